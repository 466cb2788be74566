// What is shown, as a file: tables as CSV with exact figures, charts as SVG or PNG.

function save(name, type, content) {
  const url = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  el("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

const quoted = (value) => {
  const text = value === null || value === undefined ? "" : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};

const csv = (columns, rows) => [columns, ...rows.map((row) => columns.map((name) => row[name]))]
  .map((cells) => cells.map(quoted).join(",")).join("\r\n") + "\r\n";

function svgText(drawn) {
  const copy = drawn.cloneNode(true);
  copy.setAttribute("xmlns", SVG);
  const { width, height } = drawn.viewBox.baseVal;
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  copy.prepend(svg("rect", { width, height, fill: colour("back") }));
  return new XMLSerializer().serializeToString(copy);
}

function savePng(drawn, name) {
  const { width, height } = drawn.viewBox.baseVal;
  const image = new Image();
  image.onload = () => {
    const canvas = el("canvas", { width: width * 2, height: height * 2 });
    canvas.getContext("2d").drawImage(image, 0, 0, width * 2, height * 2);
    canvas.toBlob((blob) => save(name, "image/png", blob));
  };
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svgText(drawn))}`;
}

// Buttons for a chart, beside the command that prints its figures.
function tools(drawn, name, command) {
  return el("p", { class: "tools" }, el("code", {}, command),
    button("SVG", () => save(`${name}.svg`, "image/svg+xml", svgText(drawn)), { "aria-label": `Download ${name} as SVG` }),
    button("PNG", () => savePng(drawn, `${name}.png`), { "aria-label": `Download ${name} as PNG` }));
}
