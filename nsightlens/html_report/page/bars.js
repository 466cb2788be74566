// Bars: stacked by kind, and histograms.

// bars: {label, parts: {kind: value}, note, act}. colours: kind -> colour, in their order. text: value -> text.
function stackedBars(title, bars, colours, text) {
  const left = Math.min(220, 24 + 7 * Math.max(...bars.map((bar) => bar.label.length)));
  const width = chartWidth();
  const step = bars.length > 40 ? 12 : 22;
  const most = Math.max(...bars.map((bar) => Object.values(bar.parts).reduce((sum, value) => sum + value, 0))) || 1;
  const x = linear(0, most, left, width - 70);
  const bottom = bars.length * step + 6;
  const rows = bars.map((bar, number) => {
    let at = 0;
    const pieces = Object.keys(colours).filter((kind) => bar.parts[kind]).map((kind) => {
      const from = at;
      at += bar.parts[kind];
      return mark(svg("rect", { x: x(from), width: Math.max(0.5, x(at) - x(from)), y: number * step + 3, height: step - 4,
        fill: colours[kind] }), `${bar.label}: ${kind.replaceAll("_", " ")} ${text(bar.parts[kind])}`);
    });
    const group = svg("g", {}, pieces, words(bar.label, left - 6, number * step + step / 2 + 4, { "text-anchor": "end" }),
      words(text(at), x(at) + 5, number * step + step / 2 + 4));
    return mark(group, `${bar.label}: ${text(at)}`, bar.act);
  });
  return figure(title, width, bottom + 22, xAxis(x, ticks(0, most, marksAcross(width - 70 - left)), 0, bottom, text), rows);
}

// How often which value comes: on a logarithmic axis where the values span three decades.
function histogram(title, values, text, fill) {
  const [width, height, left, bottom] = [Math.min(620, chartWidth()), 220, 50, 190];
  const low = Math.max(Math.min(...values), 1e-9);
  const high = Math.max(...values, low * 1.0001);
  const axis = high / low > 1000 ? logarithmic : linear;
  const bins = new Array(40).fill(0);
  const place = axis(low, high, 0, bins.length);
  for (const value of values) bins[Math.min(bins.length - 1, Math.max(0, Math.floor(place(value))))]++;
  const x = axis(low, high, left, width - 20);
  const y = linear(0, Math.max(...bins), bottom, 10);
  const each = (width - 20 - left) / bins.length;
  const marks = axis === logarithmic ? decades(low, high) : ticks(low, high, marksAcross(width - left, 5));
  return figure(title, width, height, yAxis(y, ticks(0, Math.max(...bins), 4), left, width - 20, number),
    xAxis(x, marks, 10, bottom, text),
    bins.map((count, bin) => count ? mark(svg("rect", { x: left + bin * each, width: each - 1, y: y(count),
      height: bottom - y(count), fill }),
      `${number(count)} launches`) : null));
}
