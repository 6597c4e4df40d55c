"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const tip = document.getElementById("tip");
  const FONT = 'system-ui, "Segoe UI", "Liberation Sans", Arial, sans-serif';

  // Times are shown from the first box on.
  const origin = data.begin;

  // ---- What the lists of numbers mean.
  const BOX = 7, TASK = 8, ARROW = 6;
  const KIND = Object.fromEntries(data.kinds.map((name, i) => [name, i]));
  const tracks = data.tracks || [], tasks = data.tasks || [], arrows = data.arrows || [];
  const critical = new Set(data.critical || []);
  const steps = new Set();
  (data.critical || []).forEach((task, i, all) => { if (i > 0) steps.add(all[i - 1] + ">" + task); });
  const taskLabel = task => tasks[task * TASK + 1];
  // Arrows by the tasks at both ends.
  const arrowsOf = new Map();
  for (let i = 0; i < arrows.length; i += ARROW) {
    for (const task of [arrows[i], arrows[i + 3]]) {
      if (!arrowsOf.has(task)) arrowsOf.set(task, []);
      arrowsOf.get(task).push(i);
    }
  }

  // ---- Colours.
  let theme = {};
  const colours = new Map();
  const readTheme = () => {
    const style = getComputedStyle(root);
    for (const name of ["card", "ink", "muted", "line", "grid", "lane", "critical", "wait", "to", "from", "other", "memory", "shade"]) {
      theme[name] = style.getPropertyValue("--" + name).trim();
    }
    theme.dark = root.dataset.theme === "dark";
  };
  // Labels have hues far apart, none of them that of the critical path.
  const hueOf = label => {
    if (!colours.has(label)) colours.set(label, 45 + (colours.size * 137.5 + 160) % 310);
    return colours.get(label);
  };
  const labelColour = label => "hsl(" + hueOf(label) + " " + (theme.dark ? "42% " : "58% ") + theme.shade + ")";
  const boxColour = (kind, label, task) => {
    switch (kind) {
      case KIND.wait: return theme.wait;
      case KIND["to the device"]: return theme.to;
      case KIND["from the device"]: return theme.from;
      case KIND.copy: case KIND.operation: return theme.other;
    }
    return labelColour(task >= 0 ? taskLabel(task) : label);
  };

  // ---- Words.
  const time = ns => {
    const abs = Math.abs(ns);
    for (const [unit, name] of [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]]) {
      if (abs >= unit) return (ns / unit).toPrecision(abs / unit >= 1000 ? 4 : 3) + " " + name;
    }
    return Math.round(ns) + " ns";
  };
  const bytes = n => {
    if (n < 1024) return n + " B";
    let unit = -1;
    do { n /= 1024; unit++; } while (n >= 1024);
    return n.toFixed(1) + " " + "KMGTPE"[unit] + "iB";
  };
  const taskLines = task => {
    const at = task * TASK, lines = [];
    if (tasks[at]) lines.push("task number " + tasks[at]);
    if (tasks[at + 7]) lines.push("not run");
    else lines.push("took " + time(tasks[at + 4]) + " by itself");
    if (tasks[at + 5]) lines.push(bytes(tasks[at + 5]) + " to devices");
    if (tasks[at + 6]) lines.push(bytes(tasks[at + 6]) + " from devices");
    return lines;
  };
  const showTip = (event, title, lines, onPath) => {
    tip.replaceChildren();
    const head = document.createElement("b");
    head.textContent = title;
    tip.append(head);
    for (const line of lines) {
      const row = document.createElement("div");
      row.textContent = line;
      tip.append(row);
    }
    if (onPath) {
      const row = document.createElement("div");
      row.className = "path";
      row.textContent = "on the critical path";
      tip.append(row);
    }
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 8)) + "px";
    tip.style.top = Math.max(4, Math.min(event.clientY + 16, innerHeight - box.height - 8)) + "px";
  };

  // ---- The task that is looked at, in both pictures.
  let hovered = -1, kept = -1;
  const views = [];
  let drawing = false;
  const redraw = () => {
    if (drawing) return;
    drawing = true;
    requestAnimationFrame(() => { drawing = false; views.forEach(view => view.draw()); });
  };
  const hover = task => { if (task !== hovered) { hovered = task; redraw(); } };
  const looked = () => hovered >= 0 ? hovered : kept;

  // Canvases are as sharp as the screen.
  const prepare = (canvas, height) => {
    const ratio = devicePixelRatio || 1, width = canvas.clientWidth;
    canvas.style.height = height + "px";
    const w = Math.round(width * ratio), h = Math.round(height * ratio);
    if (canvas.width !== w || canvas.height !== h) { canvas.width = w; canvas.height = h; }
    const c = canvas.getContext("2d");
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.clearRect(0, 0, width, height);
    return [c, width];
  };
  const within = (canvas, event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left - canvas.clientLeft, event.clientY - box.top - canvas.clientTop];
  };
  const fit = (c, text, width) => {
    if (c.measureText(text).width <= width) return text;
    let n = Math.floor(text.length * width / c.measureText(text).width);
    while (n > 0 && c.measureText(text.slice(0, n) + "…").width > width) n--;
    return n > 0 ? text.slice(0, n) + "…" : "";
  };
  // Dragging moves, wheels and buttons zoom, a click keeps a task.
  const steer = (canvas, view) => {
    let from = null, moved = false;
    canvas.addEventListener("wheel", event => {
      event.preventDefault();
      const [x, y] = within(canvas, event);
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) view.move(-event.deltaX, 0);
      else view.zoom(Math.exp(-event.deltaY * 0.0016), x, y);
      redraw();
    }, { passive: false });
    canvas.addEventListener("pointerdown", event => { from = [event.clientX, event.clientY]; moved = false; canvas.setPointerCapture(event.pointerId); });
    canvas.addEventListener("pointermove", event => {
      if (from) {
        const dx = event.clientX - from[0], dy = event.clientY - from[1];
        if (!moved && Math.hypot(dx, dy) < 4) return;
        moved = true;
        from = [event.clientX, event.clientY];
        tip.hidden = true;
        view.move(dx, dy);
        redraw();
        return;
      }
      view.point(event, ...within(canvas, event));
    });
    canvas.addEventListener("pointerup", event => {
      if (from && !moved) { view.point(event, ...within(canvas, event)); kept = kept === hovered ? -1 : hovered; redraw(); }
      from = null;
    });
    canvas.addEventListener("pointercancel", () => { from = null; });
    canvas.addEventListener("pointerleave", () => { tip.hidden = true; hover(-1); });
    canvas.addEventListener("dblclick", () => { view.all(); redraw(); });
    const actions = {
      in: () => view.zoom(1.6), out: () => view.zoom(1 / 1.6), all: () => view.all(),
      left: () => view.move(80, 0), right: () => view.move(-80, 0), up: () => view.move(0, 60), down: () => view.move(0, -60),
    };
    const keys = { "+": "in", "=": "in", "-": "out", "0": "all", ArrowLeft: "left", ArrowRight: "right", ArrowUp: "up", ArrowDown: "down" };
    canvas.addEventListener("keydown", event => {
      if (!keys[event.key] || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      actions[keys[event.key]]();
      redraw();
    });
    for (const button of document.querySelectorAll('button[data-for="' + canvas.id + '"]')) {
      button.addEventListener("click", () => { actions[button.dataset.do](); redraw(); });
    }
  };

  // ---- The timeline.
  const timeline = (() => {
    const canvas = document.getElementById("timeline");
    const AXIS = 24, HEAD = 22, GUTTER = 190, MEMORY = 84, TALLEST = 720;
    const begin = data.begin, end = Math.max(data.end, begin + 1), all = end - begin;
    // Tracks that differ by their number alone are one block with one name.
    const groupName = name => name.replace(/(,| )\s*\d+$/, (all, comma) => comma === "," ? "" : all);
    let from = begin, to = end, width = 0, height = 0, rows = [], rowHeight = 18;

    const layOut = () => {
      let lines = 0, fixed = AXIS + 8;
      data.processes.forEach((name, p) => {
        const of = tracks.filter(track => track.process === p);
        const memory = p > 0 && data.memory[p - 1] && (data.memory[p - 1].levels || []).length;
        if (of.length || memory) fixed += HEAD + (memory ? MEMORY + 6 : 0) + 4 * of.length;
        of.forEach(track => { lines += Math.max(track.depth, 1); });
      });
      rowHeight = Math.max(3, Math.min(26, (TALLEST - fixed) / Math.max(lines, 1)));
      const gap = rowHeight >= 12 ? 4 : 1;
      rows = [];
      let y = AXIS;
      data.processes.forEach((name, p) => {
        const of = [];
        tracks.forEach((track, index) => { if (track.process === p) of.push([track, index]); });
        const memory = p > 0 ? data.memory[p - 1] : null;
        const hasMemory = memory && (memory.levels || []).length;
        if (!of.length && !hasMemory) return;
        rows.push({ y, height: HEAD, title: name });
        y += HEAD;
        let last = null;
        for (const [track, index] of of) {
          const height = Math.max(track.depth, 1) * rowHeight;
          const row = { y, height, track, index, name: track.name };
          if (rowHeight < 12) {
            // No room for a name a track: one for all of a group.
            row.name = last && last.group === groupName(track.name) ? "" : groupName(track.name);
            row.group = groupName(track.name);
            last = row;
          }
          rows.push(row);
          y += height + gap;
        }
        if (hasMemory) {
          rows.push({ y: y + 2, height: MEMORY, memory });
          y += MEMORY + 6;
        }
      });
      height = Math.max(y + 4, 80);
    };
    const xOf = ns => GUTTER + (ns - from) / (to - from) * (width - GUTTER);
    const nsOf = x => from + (x - GUTTER) / (width - GUTTER) * (to - from);
    const rowOf = index => rows.find(row => row.index === index);
    const view = {
      zoom(by, x) {
        const at = nsOf(x === undefined || x < GUTTER ? (width + GUTTER) / 2 : x);
        const span = Math.min(Math.max((to - from) / by, 20), all * 1.04);
        const share = (at - from) / (to - from);
        view.set(at - share * span, at + (1 - share) * span);
      },
      set(a, b) {
        const span = b - a, margin = 0.02 * all;
        from = Math.max(Math.min(a, end + margin - span), begin - margin);
        to = from + span;
      },
      move(dx) { const by = -dx / (width - GUTTER) * (to - from); view.set(from + by, to + by); },
      all() { from = begin - 0.01 * all; to = end + 0.01 * all; },
      point(event, x, y) {
        const found = view.find(x, y);
        if (!found) { tip.hidden = true; hover(-1); return; }
        hover(found.task);
        showTip(event, found.title, found.lines, found.onPath);
      },
      find(x, y) {
        if (x < GUTTER) return null;
        const row = rows.find(row => y >= row.y && y < row.y + row.height);
        if (!row) return null;
        const ns = nsOf(x), near = (to - from) / (width - GUTTER) * 2;
        if (row.memory) {
          const levels = row.memory.levels;
          let value = 0;
          for (let i = 0; i < levels.length && levels[i] <= ns; i += 2) value = levels[i + 1];
          return { task: -1, title: bytes(value) + " in use", lines: ["at " + time(ns - origin), "at most " + bytes(row.memory.peak)] };
        }
        if (!row.track) return null;
        const s = row.track.slices || [], depth = Math.floor((y - row.y) / rowHeight);
        for (let i = s.length - BOX; i >= 0; i -= BOX) {
          if (s[i + 6] !== depth || s[i] > ns + near || s[i + 1] < ns - near) continue;
          const task = s[i + 3], lines = [data.kinds[s[i + 4]] + " of " + time(s[i + 1] - s[i]) + ", from " + time(s[i] - origin) + " on"];
          if (s[i + 5]) lines.push(bytes(s[i + 5]));
          if (task >= 0) {
            if (taskLabel(task) !== s[i + 2]) lines.push("of " + data.labels[taskLabel(task)]);
            lines.push(...taskLines(task));
          }
          return { task, title: data.labels[s[i + 2]], lines, onPath: critical.has(task) && s[i + 4] !== KIND.wait };
        }
        return null;
      },
      draw() {
        layOut();
        let c;
        [c, width] = prepare(canvas, height);
        c.fillStyle = theme.card;
        c.fillRect(0, 0, width, height);
        drawAxis(c);
        for (const row of rows) {
          if (row.title !== undefined) {
            c.fillStyle = theme.ink;
            c.font = "600 12px " + FONT;
            c.textBaseline = "middle";
            c.fillText(fit(c, row.title, width - 16), 8, row.y + row.height / 2 + 1);
          } else if (row.memory) drawMemory(c, row);
          else drawTrack(c, row);
        }
        c.save();
        c.beginPath();
        c.rect(GUTTER, AXIS, width - GUTTER, height - AXIS);
        c.clip();
        drawArrows(c);
        c.restore();
        canvas.dataset.from = from;
        canvas.dataset.to = to;
      },
    };
    const drawAxis = c => {
      const about = (to - from) / Math.max((width - GUTTER) / 110, 1);
      let step = Math.pow(10, Math.ceil(Math.log10(about)));
      if (step / 5 >= about) step /= 5; else if (step / 2 >= about) step /= 2;
      step = Math.max(step, 1);
      c.font = "11px " + FONT;
      c.textBaseline = "middle";
      for (let at = origin + Math.ceil((from - origin) / step) * step; at <= to; at += step) {
        const x = xOf(at);
        if (x < GUTTER) continue;
        c.fillStyle = theme.grid;
        c.fillRect(x, AXIS - 4, 1, height);
        c.fillStyle = theme.muted;
        const text = time(at - origin);
        if (x + 6 + c.measureText(text).width < width) c.fillText(text, x + 4, AXIS / 2);
      }
    };
    const drawTrack = (c, row) => {
      c.fillStyle = theme.lane;
      c.fillRect(GUTTER, row.y, width - GUTTER, row.height);
      if (row.name) {
        c.fillStyle = theme.muted;
        c.font = "12px " + FONT;
        c.textBaseline = "middle";
        c.fillText(fit(c, row.name, GUTTER - 24), 16, row.y + Math.min(row.height, Math.max(rowHeight, 12)) / 2);
      }
      const s = row.track.slices || [], show = looked();
      const paths = [];
      // What lies in one pixel is drawn once.
      const done = [];
      c.save();
      c.beginPath();
      c.rect(GUTTER, row.y - 2, width - GUTTER, row.height + 4);
      c.clip();
      c.font = "11px " + FONT;
      c.textBaseline = "middle";
      const pad = rowHeight >= 8 ? 2 : 0;
      for (let i = 0; i < s.length; i += BOX) {
        if (s[i + 1] < from || s[i] > to) continue;
        const depth = s[i + 6], task = s[i + 3], kind = s[i + 4];
        const x = Math.max(xOf(s[i]), GUTTER - 4), right = Math.min(xOf(s[i + 1]), width + 4);
        const w = Math.max(right - x, 1), y = row.y + depth * rowHeight + pad, h = rowHeight - 2 * pad;
        const onPath = critical.has(task) && kind !== KIND.wait && kind !== KIND.operation;
        if (onPath) paths.push([x, y, w, h]);
        if (w < 2 && done[depth] === Math.floor(x) && task !== show) continue;
        done[depth] = Math.floor(x);
        c.globalAlpha = show >= 0 && task !== show ? 0.45 : 1;
        c.fillStyle = boxColour(kind, s[i + 2], task);
        c.fillRect(x, y, w > 3 ? w - 0.5 : w, h);
        if (task === show && show >= 0) {
          c.strokeStyle = theme.ink;
          c.lineWidth = 1.5;
          c.strokeRect(x, y, w, h);
        }
        if (w > 26 && h >= 11) {
          c.fillStyle = theme.dark ? "#fff" : kind === KIND["to the device"] || kind === KIND["from the device"] ? "#fff" : "#10151b";
          c.fillText(fit(c, data.labels[s[i + 2]], w - 8), x + 4, y + h / 2 + 0.5);
        }
        c.globalAlpha = 1;
      }
      c.strokeStyle = c.fillStyle = theme.critical;
      c.lineWidth = 2;
      for (const [x, y, w, h] of paths) {
        if (w < 4 || h < 6) c.fillRect(x, y, Math.max(w, 2), h);
        else c.strokeRect(x + 1, y + 1, w - 2, h - 2);
      }
      c.restore();
    };
    const drawMemory = (c, row) => {
      const levels = row.memory.levels, top = Math.max(row.memory.peak, 1);
      const yOf = value => row.y + row.height - value / top * (row.height - 8);
      c.fillStyle = theme.lane;
      c.fillRect(GUTTER, row.y, width - GUTTER, row.height);
      c.fillStyle = theme.muted;
      c.font = "12px " + FONT;
      c.textBaseline = "middle";
      c.fillText("memory in use", 16, row.y + 12);
      c.font = "11px " + FONT;
      c.fillText("at most " + bytes(row.memory.peak), 16, row.y + 28);
      c.save();
      c.beginPath();
      c.rect(GUTTER, row.y, width - GUTTER, row.height);
      c.clip();
      c.beginPath();
      c.moveTo(xOf(levels[0]), yOf(0));
      for (let i = 0; i < levels.length; i += 2) {
        const before = i > 0 ? levels[i - 1] : 0;
        c.lineTo(xOf(levels[i]), yOf(before));
        c.lineTo(xOf(levels[i]), yOf(levels[i + 1]));
      }
      c.lineTo(xOf(end), yOf(levels[levels.length - 1]));
      c.lineTo(xOf(end), yOf(0));
      c.closePath();
      c.globalAlpha = 0.35;
      c.fillStyle = theme.memory;
      c.fill();
      c.globalAlpha = 1;
      c.strokeStyle = theme.memory;
      c.lineWidth = 1.5;
      c.stroke();
      c.restore();
    };
    const drawArrows = c => {
      const show = looked(), everything = document.getElementById("arrows").checked;
      const arrow = (i, colour, thick, alpha) => {
        const a = rowOf(arrows[i + 1]), b = rowOf(arrows[i + 4]);
        if (!a || !b) return;
        const x1 = xOf(arrows[i + 2]), x2 = xOf(arrows[i + 5]);
        if (Math.max(x1, x2) < GUTTER || Math.min(x1, x2) > width) return;
        const y1 = a.y + rowHeight / 2, y2 = b.y + rowHeight / 2, bend = Math.max(Math.min(Math.abs(x2 - x1) / 2, 40), 8);
        c.globalAlpha = alpha;
        c.strokeStyle = c.fillStyle = colour;
        c.lineWidth = thick;
        c.beginPath();
        c.moveTo(x1, y1);
        c.bezierCurveTo(x1 + bend, y1, x2 - bend, y2, x2, y2);
        c.stroke();
        c.beginPath();
        c.moveTo(x2, y2);
        c.lineTo(x2 - 5, y2 - 3);
        c.lineTo(x2 - 5, y2 + 3);
        c.fill();
        c.globalAlpha = 1;
      };
      if (everything) for (let i = 0; i < Math.min(arrows.length, 20000 * ARROW); i += ARROW) arrow(i, theme.muted, 1, 0.45);
      for (const task of critical) {
        for (const i of arrowsOf.get(task) || []) if (arrows[i + 3] === task && steps.has(arrows[i] + ">" + task)) arrow(i, theme.critical, 1.5, 1);
      }
      if (show >= 0) for (const i of arrowsOf.get(show) || []) arrow(i, theme.ink, 1.2, 0.9);
    };
    view.all();
    steer(canvas, view);
    return view;
  })();
  views.push(timeline);

  // ---- The graph.
  const graph = (() => {
    const canvas = document.getElementById("graph");
    const DX = 170, DY = 30, W = 128, H = 22, NODE = 3, PAD = 20;
    const nodes = data.graph.nodes || [], edges = data.graph.edges || [];
    let columns = 1, lines = 1;
    for (let i = 0; i < nodes.length; i += NODE) {
      columns = Math.max(columns, nodes[i + 1] + 1);
      lines = Math.max(lines, nodes[i + 2] + 1);
    }
    const fullWidth = (columns - 1) * DX + W, fullHeight = (lines - 1) * DY + H;
    let scale = 0, left = 0, top = 0, width = 0, height = 300;
    const xOf = i => left + nodes[i * NODE + 1] * DX * scale, yOf = i => top + nodes[i * NODE + 2] * DY * scale;
    const view = {
      zoom(by, x = width / 2, y = height / 2) {
        const next = Math.min(Math.max(scale * by, 0.02), 3);
        left = x - (x - left) * next / scale;
        top = y - (y - top) * next / scale;
        scale = next;
      },
      move(dx, dy) { left += dx; top += dy; },
      all() { scale = 0; },
      place() {
        scale = Math.min((width - 2 * PAD) / fullWidth, 560 / fullHeight, 1.1);
        // A long graph is read from its beginning.
        scale = Math.max(scale, Math.min(0.3, 560 / fullHeight));
        left = Math.max((width - fullWidth * scale) / 2, PAD);
        top = PAD;
      },
      point(event, x, y) {
        for (let i = nodes.length / NODE - 1; i >= 0; i--) {
          const a = xOf(i), b = yOf(i);
          if (x < a || x > a + W * scale || y < b || y > b + H * scale) continue;
          const task = nodes[i * NODE];
          hover(task);
          showTip(event, data.labels[taskLabel(task)], taskLines(task).concat("from " + time(tasks[task * TASK + 2] - origin) + " to " + time(tasks[task * TASK + 3] - origin)), critical.has(task));
          return;
        }
        tip.hidden = true;
        hover(-1);
      },
      draw() {
        width = canvas.clientWidth;
        if (scale === 0) {
          view.place();
          height = Math.max(120, Math.min(fullHeight * scale + 2 * PAD, 600));
        }
        const [c] = prepare(canvas, height);
        c.fillStyle = theme.card;
        c.fillRect(0, 0, width, height);
        const show = looked();
        const edge = (i, colour, thick, alpha) => {
          const x1 = xOf(edges[i]) + W * scale, y1 = yOf(edges[i]) + H * scale / 2, x2 = xOf(edges[i + 1]), y2 = yOf(edges[i + 1]) + H * scale / 2;
          if (Math.max(x1, x2) < 0 || Math.min(x1, x2) > width || Math.max(y1, y2) < 0 || Math.min(y1, y2) > height) return;
          c.globalAlpha = alpha;
          c.strokeStyle = colour;
          c.lineWidth = thick;
          const bend = Math.max((x2 - x1) / 2, 6 * scale);
          c.beginPath();
          c.moveTo(x1, y1);
          c.bezierCurveTo(x1 + bend, y1, x2 - bend, y2, x2, y2);
          c.stroke();
          c.globalAlpha = 1;
        };
        const over = [];
        for (let i = 0; i < edges.length; i += 2) {
          const a = nodes[edges[i] * NODE], b = nodes[edges[i + 1] * NODE];
          if (steps.has(a + ">" + b)) over.push([i, theme.critical, 2.5]);
          else if (show >= 0 && (a === show || b === show)) over.push([i, theme.ink, 1.5]);
          else edge(i, theme.muted, 1, show >= 0 ? 0.15 : 0.4);
        }
        for (const [i, colour, thick] of over) edge(i, colour, thick, 1);
        c.textBaseline = "middle";
        c.font = Math.round(12 * scale * 10) / 10 + "px " + FONT;
        for (let i = 0; i < nodes.length / NODE; i++) {
          const x = xOf(i), y = yOf(i), w = W * scale, h = H * scale, task = nodes[i * NODE];
          if (x + w < 0 || x > width || y + h < 0 || y > height) continue;
          c.beginPath();
          c.roundRect(x, y, w, h, 5 * scale);
          c.fillStyle = labelColour(taskLabel(task));
          c.globalAlpha = tasks[task * TASK + 7] ? 0.3 : 1;
          c.fill();
          c.globalAlpha = 1;
          if (critical.has(task) || task === show) {
            c.strokeStyle = critical.has(task) ? theme.critical : theme.ink;
            c.lineWidth = critical.has(task) ? 2.5 : 1.5;
            c.stroke();
          }
          if (scale > 0.45) {
            c.fillStyle = theme.dark ? "#fff" : "#10151b";
            const label = data.labels[taskLabel(task)], number = tasks[task * TASK];
            c.fillText(fit(c, number ? label + " #" + number : label, w - 12 * scale), x + 6 * scale, y + h / 2);
          }
        }
      },
    };
    steer(canvas, view);
    return view;
  })();
  views.push(graph);

  // ---- The legend.
  const legend = document.getElementById("legend");
  const drawLegend = () => {
    legend.replaceChildren();
    const add = (name, colour, outlined) => {
      const item = document.createElement("span"), mark = document.createElement("i");
      if (outlined) mark.style.border = "2px solid " + colour;
      else mark.style.background = colour;
      item.append(mark, name);
      legend.append(item);
    };
    const counts = new Map(), kinds = new Set();
    for (const track of tracks) {
      const s = track.slices || [];
      for (let i = 0; i < s.length; i += BOX) {
        kinds.add(s[i + 4]);
        if (s[i + 3] >= 0 && s[i + 4] <= KIND.kernel && s[i + 4] !== KIND.wait) {
          const label = taskLabel(s[i + 3]);
          counts.set(label, (counts.get(label) || 0) + 1);
        }
      }
    }
    if (critical.size) add("critical path", theme.critical, true);
    const most = [...counts].sort((a, b) => b[1] - a[1] || a[0] - b[0]);
    for (const [label] of most.slice(0, 8)) add(data.labels[label], labelColour(label));
    if (most.length > 8) add("and " + (most.length - 8) + " more", "transparent");
    for (const kind of ["wait", "to the device", "from the device"]) {
      if (kinds.has(KIND[kind])) add(kind, boxColour(KIND[kind]));
    }
    if (kinds.has(KIND.copy) || kinds.has(KIND.operation)) add("other operation", theme.other);
  };

  // ---- Light and dark.
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const setTheme = name => {
    root.dataset.theme = name;
    readTheme();
    drawLegend();
    redraw();
  };
  dark.addEventListener("change", () => setTheme(dark.matches ? "dark" : "light"));
  document.getElementById("theme").addEventListener("click", () => setTheme(root.dataset.theme === "dark" ? "light" : "dark"));
  document.getElementById("arrows").addEventListener("change", redraw);
  addEventListener("resize", redraw);
  setTheme(dark.matches ? "dark" : "light");
})();
