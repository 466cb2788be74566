// The timeline on its canvas: drag or arrow keys move it, Ctrl and wheel or + and - zoom, a click chooses a slice.

const PAPER = matchMedia("print");

class Timeline {
  constructor(processes, open, onChoose, onArea) {
    Object.assign(this, { processes, open, onChoose, onArea, found: null, chosen: null, area: null });
    this.canvas = el("canvas", { tabindex: 0, role: "application", class: "timeline",
      "aria-label": "Timeline: arrow keys move, plus and minus zoom, 0 shows the whole step, Enter opens or closes threads, " +
        "Space sums what is in view" });
    this.spacer = el("div", { class: "spacer" });
    this.element = el("div", { class: "scroller" }, this.canvas, this.spacer);
    this.context = this.canvas.getContext("2d");
    this.layOut();
    [this.from, this.to] = [0, this.lanes.length];
    this.element.addEventListener("scroll", () => this.draw());
    this.canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.canvas.addEventListener("pointerdown", (event) => this.press(event));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.draw()).observe(this.element);
    PAPER.onchange = () => this.print();
  }

  // Lay out again for paper, which holds all lanes, and back; at once, because a browser prints without waiting for a frame.
  print() {
    this.layOut();
    this.element.scrollTop = 0;
    this.drawNow();
  }

  layOut() {
    this.lanes = new Lanes(this.processes, this.open);
    this.height = PAPER.matches ? this.lanes.height + RULER + 4 : Math.min(620, this.lanes.height + RULER + 4);
    this.element.style.height = `${this.height + 2}px`;
    this.spacer.style.height = `${Math.max(0, this.lanes.height + RULER - this.height)}px`;
  }

  draw() {
    cancelAnimationFrame(this.waiting);
    this.waiting = requestAnimationFrame(() => this.drawNow());
  }

  drawNow() {
    const width = this.element.clientWidth;
    if (!width) return;
    const ratio = window.devicePixelRatio || 1;
    if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(this.height * ratio)) {
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(this.height * ratio);
      this.canvas.style.width = `${width}px`;
      this.canvas.style.height = `${this.height}px`;
    }
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    drawTimeline(this.context, this.view(width), this.lanes);
  }

  view(width) {
    const { from, to, found, chosen, height, area } = this;
    return { width, height, top: this.element.scrollTop, from, to, found, chosen, area };
  }

  perPixel() { return (this.to - this.from) / Math.max(1, this.element.clientWidth - GUTTER); }

  zoom(factor, around = (this.from + this.to) / 2) {
    const length = Math.min(this.lanes.length * 1.2, Math.max(200, (this.to - this.from) * factor));
    const share = (around - this.from) / (this.to - this.from);
    this.show(around - share * length, around + (1 - share) * length);
  }

  show(from, to) {
    const [length, slack] = [to - from, this.lanes.length * 0.1];
    this.from = Math.max(-slack, Math.min(from, this.lanes.length + slack - length));
    this.to = this.from + length;
    this.draw();
  }

  wheel(event) {
    if (!event.ctrlKey && !event.metaKey && !event.shiftKey) return;
    event.preventDefault();
    if (event.shiftKey) this.pan((event.deltaX || event.deltaY) * this.perPixel());
    else this.zoom(1.0015 ** event.deltaY, this.from + (event.offsetX - GUTTER) * this.perPixel());
  }

  pan(ns) { this.show(this.from + ns, this.to + ns); }

  press(event) {
    const [x, y] = [event.clientX, event.clientY];
    let [last, hasMoved] = [x, false];
    const box = this.canvas.getBoundingClientRect();
    const move = (next) => {
      hasMoved ||= Math.abs(next.clientX - x) > 3;
      if (hasMoved && event.shiftKey) this.cover([x - box.left, y - box.top], [next.clientX - box.left, next.clientY - box.top]);
      else if (hasMoved) this.pan((last - next.clientX) * this.perPixel());
      last = next.clientX;
    };
    const release = () => {
      this.canvas.removeEventListener("pointermove", move);
      if (!hasMoved) this.click(x - box.left, y - box.top);
    };
    this.canvas.setPointerCapture(event.pointerId);
    this.canvas.addEventListener("pointermove", move);
    this.canvas.addEventListener("pointerup", release, { once: true });
  }

  // Sum what lies between two points: of all lanes that they span, from one time to the other.
  cover(...points) {
    const inOrder = (values) => values.sort((a, b) => a - b);
    const [from, to] = inOrder(points.map(([x]) => this.from + Math.max(0, x - GUTTER) * this.perPixel()));
    const [top, bottom] = inOrder(points.map(([, y]) => Math.max(0, y - RULER) + this.element.scrollTop));
    const lanes = this.lanes.items.filter((item) => item.kind === "lane" && item.y + item.height > top && item.y < bottom);
    this.area = { from, to, top, bottom, lanes };
    this.chosen = null;
    this.onArea(this.area);
    this.draw();
  }

  click(x, y) {
    const item = this.lanes.at(y - RULER + this.element.scrollTop);
    if (item?.kind === "title") this.toggle(item.process);
    if (item?.kind !== "lane") return;
    const row = sliceAt(item, this.from + (x - GUTTER) * this.perPixel(), 3 * this.perPixel());
    this.choose(row < 0 ? null : { process: item.process, row, table: item.table, step: item.step });
  }

  toggle(process) {
    if (!this.open.delete(process)) this.open.add(process);
    this.area = null;
    this.layOut();
    this.draw();
  }

  choose(chosen) {
    this.chosen = chosen;
    this.area = null;
    this.onChoose(chosen);
    this.draw();
  }

  // Show a slice with some time around it.
  goTo(process, row) {
    const { table, step } = this.processes[process];
    const [start, length] = [table.value("start_ns", row), table.value("duration_ns", row)];
    this.show(start - 4 * length - 1000, start + 5 * length + 1000);
    this.choose({ process, row, table, step });
    const lane = this.lanes.items.find((item) => item.kind === "lane" && item.process === process && row >= item.from
      && row < item.to);
    if (lane) this.element.scrollTop = lane.y - this.height / 2;
  }

  key(event) {
    const length = this.to - this.from;
    const acts = {
      ArrowLeft: () => this.pan(-length / 5), ArrowRight: () => this.pan(length / 5), a: () => this.pan(-length / 5),
      d: () => this.pan(length / 5), "+": () => this.zoom(0.7), w: () => this.zoom(0.7), "-": () => this.zoom(1.4),
      s: () => this.zoom(1.4), 0: () => this.show(0, this.lanes.length), Enter: () => this.toggle(0),
      " ": () => this.cover([GUTTER, RULER], [this.element.clientWidth, this.height]),
    };
    if (!acts[event.key]) return;
    event.preventDefault();
    acts[event.key]();
  }
}
