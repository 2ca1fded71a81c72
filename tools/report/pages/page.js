'use strict';
// Zoom, hover and keyboard of the timelines; buttons that copy. The pictures are there without it.
(() => {
  const svgNs = 'http://www.w3.org/2000/svg';
  const letterWidth = 6;
  const isLaunch = -2;  // in place of a task's detail: the host launches it
  // Narrow bars that lie end to end are one piece (timeline_picture.cpp has the same rule).
  const narrowBar = 1.5, leastGap = 16;
  const widest = 1110, narrowest = 440;  // of a timeline, in pixels

  function timeText(ms) {
    if (ms >= 1) return `${ms.toFixed(ms >= 100 ? 1 : 3)} ms`;
    return `${(ms * 1000).toFixed(ms >= 0.01 ? 1 : 3)} us`;
  }

  // Steps of 1, 2 or 5 times a power of ten, at most `most` of them in `length`.
  function tickStep(length, most) {
    const least = length / most;
    const power = 10 ** Math.floor(Math.log10(least));
    return power * [1, 2, 5, 10].find(times => power * times >= least * (1 - 1e-9));
  }

  // Texts, each written as how much of the one before it begins with, and the rest.
  function textsOf(written) {
    const texts = [];
    for (let i = 0, text = ''; i < written.length; i += 2)
      texts.push(text = text.slice(0, written[i]) + written[i + 1]);
    return texts;
  }

  // Lanes with their tasks at absolute times.
  function lanesOf(lanes) {
    return lanes.map(lane => {
      const from = [], to = [], name = [], detail = [], why = [], paint = [];
      let at = 0, last = 0;
      for (let i = 0; i < lane.tasks.length; i += 6) {
        from.push(at + lane.tasks[i]);
        at = from[from.length - 1] + lane.tasks[i + 1];
        to.push(at);
        name.push(last += lane.tasks[i + 2]);
        detail.push(lane.tasks[i + 3]);
        why.push(lane.tasks[i + 4]);
        paint.push(lane.tasks[i + 5]);
      }
      return {...lane, from, to, name, detail, why, paint};
    });
  }

  // The bars of a lane between two times, as the `d` of paths: [paint][every other bar].
  function pathsOf(lane, begin, end, perPixel) {
    const paths = [], narrow = narrowBar * perPixel;
    const length = i => Math.max(lane.to[i] - lane.from[i], 1);
    let turn = 0;
    for (let i = firstAfter(lane, begin); i < lane.from.length && lane.from[i] < end;) {
      const paint = lane.paint[i], from = lane.from[i], alone = length(i) >= narrow;
      let to = from + length(i);
      for (++i; !alone && i < lane.from.length && lane.paint[i] === paint; ++i) {
        if (length(i) >= narrow || (lane.from[i] - to) * leastGap > length(i)) break;
        to = lane.from[i] + length(i);
      }
      const lines = paths[paint] ??= ['', ''];
      lines[alone ? turn++ % 2 : 0] += `M${from} ${lane.top + lane.height / 2}h${to - from}`;
    }
    return paths;
  }

  // The first task that ends after `tick`.
  function firstAfter(lane, tick) {
    let low = 0, high = lane.to.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (lane.to[middle] <= tick) low = middle + 1; else high = middle;
    }
    return low;
  }

  class Timeline {
    constructor(figure) {
      this.figure = figure;
      this.box = figure.querySelector('.drawn');
      this.tip = document.createElement('div');
      this.tip.className = 'tip';
      this.tip.hidden = true;
      this.box.append(this.tip);
      this.load(JSON.parse(figure.querySelector('.tasks').textContent));
      this.said = document.createElement('p');
      this.said.className = 'said';
      this.said.setAttribute('aria-live', 'polite');
      this.box.after(this.said);
      this.addTools();
      this.box.addEventListener('pointermove', event => this.point(event));
      this.box.addEventListener('pointerleave', () => { this.tip.hidden = true; });
      this.box.addEventListener('pointerdown', event => this.drag(event));
      this.box.addEventListener('wheel', event => this.wheel(event), {passive: false});
      this.box.addEventListener('keydown', event => this.key(event));
      this.box.addEventListener('dblclick', () => this.show(0, this.data.end));
    }

    // Takes a picture that stands in the box, and its tasks.
    load(data) {
      // What a task is may come later than the picture.
      this.data = {...data, names: textsOf(data.names ?? []), details: textsOf(data.details ?? [])};
      this.lanes = lanesOf(data.lanes ?? []);
      this.svg = this.box.querySelector('svg');
      this.bars = this.svg.querySelector('svg.bars');
      this.patterns = [...this.svg.querySelectorAll('pattern:not([id$="-key"])')];
      this.labels = this.svg.querySelector('g.labels');
      this.axis = this.svg.querySelector('g.axis');
      this.from = 0;
      this.to = data.end;
      this.at = null;
      this.fit(this.box.clientWidth);
    }

    // Lays the picture out anew for a page of this width: time is what becomes narrower, and texts
    // keep their size. The key goes on as many rows as it needs.
    fit(room) {
      const {left} = this.data, right = 18;
      const whole = Math.max(narrowest, Math.min(widest, Math.floor(room)));
      if (this.svg.viewBox.baseVal.width === whole) return;
      this.data.width = whole - left - right;
      let x = left, y = this.data.bottom;
      for (const key of this.svg.querySelectorAll('g.key')) {
        const wide = key.getBBox().width + 20;
        if (x > left && x + wide > whole) {
          x = left;
          y += 18;
        }
        if (x + wide > whole) x = Math.max(8, whole - wide);
        key.setAttribute('transform', `translate(${x} ${y})`);
        x += wide;
      }
      const high = y + 26;
      this.svg.setAttribute('viewBox', `0 0 ${whole} ${high}`);
      this.svg.setAttribute('width', whole);
      this.svg.setAttribute('height', high);
      this.bars.setAttribute('width', this.data.width);
      for (const text of this.svg.querySelectorAll('text.length'))
        text.setAttribute('x', left + this.data.width);
      this.show(this.from, this.to);
    }

    addTools() {
      const tools = document.createElement('div');
      tools.className = 'tools';
      const add = (text, label, act) => {
        const button = document.createElement('button');
        button.type = 'button';
        button.textContent = text;
        button.setAttribute('aria-label', label);
        button.addEventListener('click', act);
        tools.append(button);
      };
      add('+', 'zoom in', () => this.zoom(0.5));
      add('\u2212', 'zoom out', () => this.zoom(2));
      add('\u2190', 'earlier', () => this.move(-0.25));
      add('\u2192', 'later', () => this.move(0.25));
      add('whole step', 'show the whole step', () => this.show(0, this.data.end));
      const hint = document.createElement('span');
      hint.className = 'soft';
      hint.textContent = 'wheel or + \u2212: zoom; drag or arrows: move; [ and ]: task by task; 0: all';
      tools.append(hint);
      this.box.before(tools);
    }

    ms(tick) { return tick * this.data.tick_ns / 1e6; }
    tickAt(x) { return this.from + (x - this.data.left) / this.data.width * (this.to - this.from); }
    xOf(tick) {
      return this.data.left + (tick - this.from) / (this.to - this.from) * this.data.width;
    }

    zoom(factor, around = (this.from + this.to) / 2) {
      this.show(around - (around - this.from) * factor, around + (this.to - around) * factor);
    }
    move(share) {
      const by = (this.to - this.from) * share;
      this.show(this.from + by, this.to + by);
    }

    // Draws what lies between two times.
    show(from, to) {
      const length = Math.min(this.data.end, Math.max(to - from, Math.min(100, this.data.end)));
      from = Math.min(Math.max(0, from), this.data.end - length);
      this.from = from;
      this.to = from + length;
      this.bars.setAttribute('viewBox', `${from} 0 ${length} ${this.data.bottom}`);
      this.drawBars();
      for (const pattern of this.patterns)
        pattern.setAttribute('patternTransform', `scale(${length / this.data.width} 1)`);
      this.drawAxis();
      this.drawLabels();
      this.tip.hidden = true;
    }

    drawBars() {
      if (this.lanes.length === 0) return;
      for (const path of this.bars.querySelectorAll('path:not(.hatched)')) path.remove();
      const made = [];
      for (const lane of this.lanes)
        pathsOf(lane, this.from, this.to, (this.to - this.from) / this.data.width)
          .forEach((lines, paint) => lines.forEach((d, odd) => {
            if (d === '') return;
            const path = document.createElementNS(svgNs, 'path');
            path.setAttribute('class', this.data.paints[paint] + (odd ? ' odd' : ''));
            path.setAttribute('d', d);
            path.setAttribute('stroke-width', lane.height);
            made.push(path);
          }));
      this.bars.prepend(...made);
    }

    drawAxis() {
      this.axis.replaceChildren();
      const length = this.ms(this.to - this.from), step = tickStep(length, 10);
      const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
      for (let i = Math.ceil(this.ms(this.from) / step - 1e-9); i * step <= this.ms(this.to) * (1 + 1e-12); ++i) {
        const x = this.xOf(i * step * 1e6 / this.data.tick_ns);
        const line = document.createElementNS(svgNs, 'path');
        line.setAttribute('class', 'grid');
        line.setAttribute('d', `M${x} ${this.data.axis}V${this.data.bottom}`);
        const text = document.createElementNS(svgNs, 'text');
        text.setAttribute('class', 'soft');
        text.setAttribute('x', x);
        text.setAttribute('y', this.data.axis - 6);
        text.setAttribute('text-anchor', 'middle');
        text.textContent = (i * step).toFixed(digits);
        this.axis.append(line, text);
      }
    }

    drawLabels() {
      this.labels.replaceChildren();
      const scale = this.data.width / (this.to - this.from);
      for (const lane of this.lanes) {
        if (lane.height < 11) continue;
        for (let i = firstAfter(lane, this.from); i < lane.from.length && lane.from[i] < this.to; ++i) {
          const from = Math.max(lane.from[i], this.from), to = Math.min(lane.to[i], this.to);
          const room = (to - from) * scale - 4;
          if (lane.name[i] < 0 || room < 3 * letterWidth) continue;
          let name = this.nameOf(lane, i);
          if (name.length * letterWidth > room) {
            const cut = Math.floor(room / letterWidth) - 1;
            if (cut < 6) continue;
            name = name.slice(0, cut) + '\u2026';
          }
          const text = document.createElementNS(svgNs, 'text');
          text.setAttribute('class', this.data.paints[lane.paint[i]] === 'launch' ? 'on dull' : 'on');
          text.setAttribute('x', this.xOf(from) + 2);
          text.setAttribute('y', lane.top + lane.height / 2 + 3.5);
          text.textContent = name;
          this.labels.append(text);
        }
      }
    }

    nameOf(lane, i) {
      const name = this.data.names[lane.name[i]] ?? '';
      return lane.detail[i] === isLaunch ? `launch ${name}` : name;
    }

    // What is known of a task, line by line.
    linesOf(lane, i) {
      const lines = [this.nameOf(lane, i),
                     `${lane.step}, ${lane.label || 'buckets'}: ${timeText(this.ms(lane.from[i]))} to ` +
                     `${timeText(this.ms(lane.to[i]))}, ${timeText(this.ms(lane.to[i] - lane.from[i]))} long`];
      if (lane.detail[i] >= 0) lines.push(this.data.details[lane.detail[i]]);
      if (lane.why[i] >= 0) lines.push(this.data.details[lane.why[i]]);
      return lines;
    }

    // The task below a point of the picture; null if there is none.
    taskAt(x, y) {
      if (x < this.data.left || x > this.data.left + this.data.width) return null;
      const lane = this.lanes.find(each => y >= each.top && y <= each.top + each.height);
      if (!lane) return null;
      const slack = 2 * (this.to - this.from) / this.data.width, tick = this.tickAt(x);
      let best = null, nearest = slack;
      for (let i = firstAfter(lane, tick - slack); i < lane.from.length && lane.from[i] <= tick + slack; ++i) {
        const far = Math.max(lane.from[i] - tick, tick - lane.to[i], 0);
        if (best === null ? far <= nearest : far < nearest) {
          best = {lane, i};
          nearest = far;
        }
      }
      return best;
    }

    place(event) {
      const box = this.svg.getBoundingClientRect();
      const scale = this.svg.viewBox.baseVal.width / box.width;
      return [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
    }

    point(event) {
      if (this.dragging) return;
      const [x, y] = this.place(event);
      const found = this.taskAt(x, y);
      this.tip.hidden = !found;
      if (!found) return;
      this.write(this.linesOf(found.lane, found.i));
      const outer = this.box.getBoundingClientRect();
      const left = event.clientX - outer.left + this.box.scrollLeft;
      const room = outer.width + this.box.scrollLeft - this.tip.offsetWidth - 8;
      this.tip.style.left = `${Math.max(0, Math.min(left + 14, room))}px`;
      // Below the pointer or, where there is no room, above it.
      const top = event.clientY - outer.top, high = this.tip.offsetHeight;
      const fits = top + 18 + high <= outer.height;
      this.tip.style.top = `${fits ? top + 18 : Math.max(0, top - 12 - high)}px`;
    }

    write(lines) {
      this.tip.replaceChildren();
      lines.forEach((line, i) => {
        const row = document.createElement('div');
        if (i === 0) row.style.fontWeight = '600';
        row.textContent = line;
        this.tip.append(row);
      });
    }

    drag(event) {
      if (event.button !== 0 || event.target.closest('button')) return;
      const [x] = this.place(event);
      const from = this.from, to = this.to;
      this.dragging = true;
      const move = later => {
        const by = (x - this.place(later)[0]) / this.data.width * (to - from);
        this.show(from + by, to + by);
      };
      const end = () => {
        this.dragging = false;
        window.removeEventListener('pointermove', move);
        window.removeEventListener('pointerup', end);
      };
      window.addEventListener('pointermove', move);
      window.addEventListener('pointerup', end);
    }

    wheel(event) {
      const [x] = this.place(event);
      if (x < this.data.left || Math.abs(event.deltaX) > Math.abs(event.deltaY)) return;
      const whole = this.to - this.from >= this.data.end;
      if (whole && event.deltaY > 0) return;  // the page scrolls on
      event.preventDefault();
      this.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.tickAt(x));
    }

    key(event) {
      if (event.target !== this.box || event.ctrlKey || event.metaKey || event.altKey) return;
      const acts = {'+': () => this.zoom(0.5), '=': () => this.zoom(0.5), '-': () => this.zoom(2),
                    ArrowLeft: () => this.move(-0.25), ArrowRight: () => this.move(0.25),
                    '0': () => this.show(0, this.data.end), Home: () => this.show(0, this.data.end),
                    '[': () => this.step(-1), ']': () => this.step(1)};
      if (!(event.key in acts)) return;
      event.preventDefault();
      acts[event.key]();
    }

    // The next task of a lane, said aloud; Shift and the brackets would be lanes on most keyboards,
    // so that lanes follow one another at their ends.
    step(by) {
      if (!this.at) {
        const lane = Math.max(0, this.lanes.findIndex(each => each.label === 'compute'));
        this.at = {lane, i: by > 0 ? -1 : this.lanes[lane].from.length};
      }
      let {lane, i} = this.at;
      i += by;
      while (lane >= 0 && lane < this.lanes.length && (i < 0 || i >= this.lanes[lane].from.length)) {
        lane += by;
        i = by > 0 ? 0 : (this.lanes[lane]?.from.length ?? 0) - 1;
      }
      if (lane < 0 || lane >= this.lanes.length) return;
      this.at = {lane, i};
      const shown = this.lanes[lane];
      if (shown.from[i] < this.from || shown.to[i] > this.to) {
        const half = (this.to - this.from) / 2, middle = (shown.from[i] + shown.to[i]) / 2;
        this.show(middle - half, middle + half);
      }
      this.said.textContent = this.linesOf(shown, i).join(' \u00b7 ');
    }
  }

  function addCopyButtons() {
    for (const pre of document.querySelectorAll('pre')) {
      const button = document.createElement('button');
      button.type = 'button';
      button.textContent = 'copy';
      button.setAttribute('aria-label', 'copy the text below');
      button.addEventListener('click', async () => {
        try {
          await navigator.clipboard.writeText(pre.textContent);
          button.textContent = 'copied';
        } catch {  // without the right to write there: select it, for the reader to copy
          getSelection().selectAllChildren(pre);
          button.textContent = 'selected';
        }
        setTimeout(() => { button.textContent = 'copy'; }, 1500);
      });
      pre.before(button);
    }
  }

  // Pictures that each show one of several things: selectors choose which are shown. At first all
  // values of the keys, where that makes few pictures, of one figure and one strategy.
  function addSelectors(section) {
    const pictures = [...section.querySelectorAll('figure[data-choices]')]
      .map(figure => ({figure, choices: new Map(JSON.parse(figure.dataset.choices))}));
    if (pictures.length === 0) return;
    const values = new Map();
    for (const {choices} of pictures)
      for (const [name, value] of choices)
        if (!values.has(name)) values.set(name, new Set([value])); else values.get(name).add(value);
    const isKey = name => name !== 'figure' && name !== 'strategy';
    const together = [...values].reduce((all, [name, set]) => all * (isKey(name) ? set.size : 1), 1);
    const chosen = new Map();
    const box = document.createElement('div');
    box.className = 'choose';
    const show = () => pictures.forEach(({figure, choices}) => {
      figure.hidden = [...chosen].some(([name, value]) => value !== '' && value !== choices.get(name));
    });
    for (const [name, set] of values) {
      const first = isKey(name) && together <= 6 ? ''
        : name === 'strategy' && set.has('bucketed') ? 'bucketed'
          : name === 'figure' ? [...set].pop() : [...set][0];
      chosen.set(name, first);
      if (set.size === 1) continue;
      const label = document.createElement('label'), select = document.createElement('select');
      for (const value of isKey(name) ? ['', ...set] : set)
        select.append(new Option(value === '' ? 'all values' : value, value, false, value === first));
      select.addEventListener('change', () => { chosen.set(name, select.value); show(); });
      label.append(`${name}: `, select);
      box.append(label);
    }
    pictures[0].figure.before(box);
    show();
  }

  const timelines = () => window.ddpsimTimelines;
  window.addEventListener('resize', () => timelines().forEach(each => each.fit(each.box.clientWidth)));
  window.addEventListener('beforeprint', () => timelines().forEach(each => each.fit(widest)));
  window.addEventListener('afterprint', () => timelines().forEach(each => each.fit(each.box.clientWidth)));
  document.querySelectorAll('section').forEach(addSelectors);

  window.ddpsimTimelines = [...document.querySelectorAll('figure.timeline')].map(each => new Timeline(each));
  addCopyButtons();
})();
