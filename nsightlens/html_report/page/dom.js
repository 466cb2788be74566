// Elements. Text is always set as text: nothing that the captures hold becomes markup.

const SVG = "http://www.w3.org/2000/svg";

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

const el = (tag, attributes = {}, ...children) => filled(document.createElement(tag), attributes, children);
const svg = (tag, attributes = {}, ...children) => filled(document.createElementNS(SVG, tag), attributes, children);
const button = (text, onclick, attributes = {}) => el("button", { type: "button", onclick, ...attributes }, text);

function select(label, options, value, onchange) {
  const found = el("select", { "aria-label": label, onchange: (event) => onchange(event.target.value) },
    options.map(([key, text]) => el("option", { value: key }, text)));
  found.value = value;
  return el("label", {}, `${label} `, found);
}

function search(label, value, oninput) {
  return el("label", {}, `${label} `, el("input", { type: "search", value, oninput: (event) => oninput(event.target.value) }));
}

const say = (text) => { document.getElementById("status").textContent = text; };
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
