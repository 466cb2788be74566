// Points and lines.

// series: {points: [[x, y]], fill}. At most some thousand points are drawn; of a stretch the least and the greatest stay.
function dots(title, points, xText, yText, fill) {
  const [width, height, left, bottom] = [Math.min(620, chartWidth()), 220, 70, 190];
  const drawn = thinned(points, 2500);
  const xs = points.map((point) => point[0]);
  const ys = points.map((point) => point[1]);
  const [least, most] = [extent(xs), extent(ys)];
  const x = linear(...least, left, width - 20);
  const y = linear(0, most[1], bottom, 10);
  return figure(title, width, height, yAxis(y, ticks(0, most[1], 4), left, width - 20, yText),
    xAxis(x, ticks(...least, 4), 10, bottom, xText),
    drawn.map(([at, value]) => svg("circle", { cx: x(at), cy: y(value), r: 1.8, fill, "fill-opacity": 0.7 })));
}

function extent(values) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return [low, high];
}

// Points in order of x: at most about `most` of them; the least and the greatest y of each stretch stay.
function thinned(points, most) {
  if (points.length <= most) return points;
  const each = Math.ceil(points.length / (most / 2));
  const found = [];
  for (let from = 0; from < points.length; from += each) {
    const stretch = points.slice(from, from + each);
    const [low, high] = extent(stretch.map((point) => point[1]));
    const kept = new Set([stretch.findIndex((point) => point[1] === low), stretch.findIndex((point) => point[1] === high)]);
    found.push(...[...kept].sort((a, b) => a - b).map((place) => stretch[place]));
  }
  return found;
}
