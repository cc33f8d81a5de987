// The graph: reserved and used bytes of each heap over time, with the budget. It paints, and knows no selection.

const LANE_HEIGHT = 76;
const MARKS_HEIGHT = 44;
// A budget far above the peak is a text, so that the curve is not flat.
const BUDGET_WITHIN = 2.5;

// Round steps that divide a span into about `wanted` parts.
function tickStep(span, wanted) {
  const rough = span / Math.max(1, wanted);
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1e-9)));
  return power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
}

class Graph {
  constructor(holder, history, palette) {
    this.palette = palette;
    this.holder = holder;
    this.lanes = [];
    this.axis = 'time';
    this.setHistory(history);
  }

  // Lanes for heaps that ever hold memory.
  setHistory(history) {
    this.history = history;
    this.holder.textContent = '';
    this.lanes = history.heaps.filter((heap) => heap.peakReserved > 0).map((heap) => {
      const canvas = make('canvas', { 'aria-hidden': 'true' });
      this.holder.append(make('div', { class: 'lane' }, laneTitle(heap), canvas));
      return { heap, canvas };
    });
    this.marks = make('canvas', { 'aria-hidden': 'true' });
    this.holder.append(make('div', { class: 'lane' }, this.marks));
    this.showAll();
  }

  // The values of the axis: nanoseconds, or calls.
  get values() {
    return this.axis === 'time' ? this.history.time : this.history.call;
  }

  setAxis(axis) {
    const [from, to] = [this.momentAt(0), this.momentAt(1)];
    this.axis = axis;
    const { values } = this;
    this.window(values[from], values[to] - values[from]);
  }

  showAll() {
    const { values } = this;
    this.from = 0;
    this.to = Math.max(values[values.length - 1], 1);
  }

  // Shows a part of the axis, within the recording.
  window(from, span) {
    const whole = Math.max(this.values[this.values.length - 1], 1);
    const shown = Math.min(whole, Math.max(span, 1));
    this.from = Math.min(Math.max(0, from), whole - shown);
    this.to = this.from + shown;
  }

  zoom(factor, around) {
    const middle = around === null ? (this.from + this.to) / 2 : around;
    const span = (this.to - this.from) * factor;
    const share = (middle - this.from) / (this.to - this.from);
    this.window(middle - span * Math.min(Math.max(share, 0), 1), span);
  }

  // The moment at a share of the width.
  momentAt(share) {
    return lastUpTo(this.values, this.from + Math.min(Math.max(share, 0), 1) * (this.to - this.from));
  }

  // The horizontal position of a moment in pixels.
  x(moment) {
    return ((this.values[moment] - this.from) / (this.to - this.from)) * this.width;
  }

  // Makes a moment visible.
  reveal(moment) {
    const value = this.values[moment];
    const span = this.to - this.from;
    if (value < this.from || value > this.to) this.window(value - span / 2, span);
  }

  // `selection`: {before, now}, where `before` is null or a moment.
  paint(selection) {
    this.width = Math.max(200, Math.floor(this.holder.clientWidth));
    for (const { heap, canvas } of this.lanes) {
      const context = sizeCanvas(canvas, this.width, LANE_HEIGHT);
      this.paintHeap(context, heap);
      this.paintSelection(context, selection, LANE_HEIGHT);
    }
    const context = sizeCanvas(this.marks, this.width, MARKS_HEIGHT);
    this.paintMarks(context);
    this.paintSelection(context, selection, 20);
  }

  paintHeap(context, heap) {
    const { palette } = this;
    const budget = highest(heap.budgets);
    const hasBudget = showsBudget(heap);
    const driver = highest(heap.driver);
    const top = Math.max(heap.peakReserved, heap.peakUsed, driver, hasBudget ? budget : 0, 1) * 1.08;
    context.fillStyle = palette.free;
    context.fillRect(0, 0, this.width, LANE_HEIGHT);
    this.paintArea(context, heap.reserved, top, palette.reserved);
    this.paintArea(context, heap.used, top, palette.used);
    if (driver > 0) this.paintSteps(context, heap.driver, top, palette.ink, []);
    if (hasBudget) this.paintSteps(context, heap.budgets, top, palette.warning, [6, 4]);
    this.paintScale(context, top);
  }

  // A line at a round size with its label, from which heights can be read. The halo keeps it legible on any colour.
  paintScale(context, top) {
    const { palette } = this;
    const size = 2 ** Math.floor(Math.log2(top / 1.2));
    const y = Math.round(LANE_HEIGHT * (1 - size / top)) + 0.5;
    context.strokeStyle = palette.edge;
    context.lineWidth = 1;
    context.setLineDash([1, 3]);
    context.beginPath();
    context.moveTo(0, y);
    context.lineTo(this.width, y);
    context.stroke();
    context.setLineDash([]);
    context.font = LABEL_FONT;
    context.textBaseline = 'top';
    context.lineJoin = 'round';
    context.lineWidth = 3;
    context.strokeStyle = palette.free;
    context.fillStyle = palette.ink;
    context.strokeText(bytes(size), 5, y + 3);
    context.fillText(bytes(size), 5, y + 3);
  }

  // A line over values that each hold from a moment on.
  paintSteps(context, steps, top, colour, dashes) {
    context.strokeStyle = colour;
    context.lineWidth = 1.5;
    context.setLineDash(dashes);
    context.beginPath();
    steps.forEach(([moment, size], at) => {
      const y = Math.round(LANE_HEIGHT * (1 - size / top)) + 0.5;
      const left = this.x(moment);
      const right = at + 1 < steps.length ? this.x(steps[at + 1][0]) : Math.max(this.x(this.history.last), this.width);
      if (right < 0 || left > this.width) return;
      context.lineTo(Math.max(left, 0), y);
      context.lineTo(Math.min(right, this.width), y);
    });
    context.stroke();
    context.setLineDash([]);
  }

  // Each pixel has the largest value of its moments, so that a short peak stays visible.
  paintArea(context, series, top, colour) {
    const { values } = this;
    const perPixel = (this.to - this.from) / this.width;
    let moment = lastUpTo(values, this.from);
    context.fillStyle = colour;
    for (let pixel = 0; pixel < this.width; pixel += 1) {
      const end = this.from + (pixel + 1) * perPixel;
      let most = series[moment];
      while (moment < this.history.last && values[moment + 1] < end) {
        moment += 1;
        most = Math.max(most, series[moment]);
      }
      if (most > 0) {
        const height = Math.max(1, (most / top) * LANE_HEIGHT);
        context.fillRect(pixel, LANE_HEIGHT - height, 1, height);
      }
    }
  }

  paintMarks(context) {
    const { palette, history } = this;
    const { frames, failures, raw } = history;
    context.fillStyle = palette.edge;
    // Frames that are too dense become one line.
    let last = -Infinity;
    for (const moment of frames.moment) {
      const x = Math.round(this.x(moment));
      if (x < 0 || x > this.width || x === last) continue;
      context.fillRect(x, x - last < 3 ? 3 : 0, 1, 6);
      last = x;
    }
    context.fillStyle = palette.mark;
    for (const burst of raw.bursts) {
      const [left, right] = [this.x(burst.from), this.x(burst.to)];
      const width = Math.max(6, right - left);
      if (right < 0 || left > this.width) continue;
      context.fillRect((left + right - width) / 2, 10, width, 5);
    }
    context.strokeStyle = palette.warning;
    context.lineWidth = 2;
    for (const moment of failures) {
      const x = this.x(moment);
      if (x < 0 || x > this.width) continue;
      context.beginPath();
      context.moveTo(x - 4, 9);
      context.lineTo(x + 4, 17);
      context.moveTo(x + 4, 9);
      context.lineTo(x - 4, 17);
      context.stroke();
    }
    this.paintTicks(context);
  }

  paintTicks(context) {
    const { palette } = this;
    const step = tickStep(this.to - this.from, this.width / 110);
    context.font = LABEL_FONT;
    context.textBaseline = 'alphabetic';
    context.fillStyle = palette.soft;
    for (let value = Math.ceil(this.from / step) * step; value <= this.to; value += step) {
      const x = ((value - this.from) / (this.to - this.from)) * this.width;
      const text = this.axis === 'time' && value > 0 ? duration(value) : exact(Math.round(value));
      const half = context.measureText(text).width / 2;
      context.fillRect(Math.round(x), 20, 1, 5);
      context.fillText(text, Math.min(Math.max(0, x - half), this.width - 2 * half), 38);
    }
  }

  paintSelection(context, { before, now }, height) {
    const { palette } = this;
    const at = this.x(now);
    if (before !== null) {
      const from = this.x(before);
      context.fillStyle = palette.selection;
      context.fillRect(from, 0, Math.max(1, at - from), height);
      context.fillStyle = palette.ink;
      for (let y = 0; y < height; y += 6) context.fillRect(Math.round(from) - 1, y, 2, 4);
    }
    context.fillStyle = palette.ink;
    context.fillRect(Math.round(at) - 1, 0, 2, height);
  }
}

// The most of sizes that each hold from a moment on.
function highest(steps) {
  return steps.reduce((most, [, size]) => Math.max(most, size), 0);
}

// True if the graph has a line for the budget.
function showsBudget(heap) {
  const budget = highest(heap.budgets);
  return budget > 0 && budget <= heap.peakReserved * BUDGET_WITHIN;
}

function laneTitle(heap) {
  const term = (className, label, size, note = '') => make('span', { class: `term ${className}`, data: { value: String(size) }, title: `${exact(size)} bytes` },
    make('span', { class: 'swatch' }), `${label} `, make('b', {}, bytes(size)), note);
  const isShown = showsBudget(heap);
  return make('p', { class: 'lane-title' },
    make('b', {}, `Heap ${heap.index}`), flagList(heap.flags),
    make('span', { class: 'terms' },
      term('reserved', 'peak reserved', heap.peakReserved), term('used', 'peak used', heap.peakUsed),
      heap.budget > 0
        ? term(isShown ? 'limit' : 'beyond', 'budget', heap.budgets[heap.budgets.length - 1][1], isShown ? '' : ' (above the graph)')
        : null,
      heap.driver.length > 1 ? term('driver', 'driver’s own objects, at the end', heap.driver[heap.driver.length - 1][1]) : null));
}
