// The page's behaviour: theme, scroll position, sorting, the graph, and links between a layer's row and its node.
(() => {
  "use strict";
  const all = (selector, inside = document) => [...inside.querySelectorAll(selector)];
  const byId = (id) => document.getElementById(id);
  const SVG = "http://www.w3.org/2000/svg";

  function setUpTheme() {
    const dark = window.matchMedia("(prefers-color-scheme: dark)");
    const root = document.documentElement;
    const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
    const button = byId("theme");
    const name = () => (button.textContent = isDark() ? "Light theme" : "Dark theme");
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      name();
    });
    dark.addEventListener("change", name);
    name();
  }

  function setUpPlaces() {
    const choice = byId("place");
    if (!choice) return;
    const show = () => all("[data-place]").forEach((e) => e.toggleAttribute("hidden", e.dataset.place !== choice.value));
    choice.addEventListener("change", show);
    // A browser keeps the choice of a page that is loaded once more.
    show();
  }

  function setUpSorting() {
    const body = document.querySelector("#layers tbody");
    const key = (row, column) => {
      const cell = row.cells[column];
      return "sort" in cell.dataset ? Number(cell.dataset.sort) : cell.textContent.trim();
    };
    const compare = (a, b) => (typeof a === "number" ? a - b : a.localeCompare(b, "en", { numeric: true }));
    for (const head of all("#layers thead th")) {
      head.addEventListener("click", () => {
        const first = head.classList.contains("number") && head.cellIndex > 0 ? "descending" : "ascending";
        const other = first === "ascending" ? "descending" : "ascending";
        const order = head.getAttribute("aria-sort") === first ? other : first;
        all("#layers thead th").forEach((each) => each.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", order);
        const factor = order === "ascending" ? 1 : -1;
        const rows = [...body.rows].map((row) => [key(row, head.cellIndex), row]);
        rows.sort(([a], [b]) => factor * compare(a, b));
        body.append(...rows.map(([, row]) => row));
      });
    }
  }

  function element(name, attributes, ...children) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  // Makes a smooth line through the points of the layout: curves between the middles of its segments.
  function path(points) {
    const middle = (a, b) => `${(a.x + b.x) / 2} ${(a.y + b.y) / 2}`;
    const curves = points.slice(1, -1).map((p, i) => `Q ${p.x} ${p.y} ${middle(p, points[i + 2])}`);
    const end = points[points.length - 1];
    return `M ${points[0].x} ${points[0].y} L ${middle(points[0], points[1])} ${curves.join(" ")} L ${end.x} ${end.y}`;
  }

  const WIDTH = 200, HEIGHT = 46, MARGIN = 16;

  // The layout takes more than linear time, so a large graph is laid out in parts. Two parts share the one node that
  // connects them. A part of more than LARGEST nodes without such a connecting node would take many seconds.
  const PART = 80, LARGEST = 600;

  function partsOf({ nodes, edges }) {
    const lastReader = nodes.map(() => Infinity);
    edges.forEach(({ from }) => (lastReader[from] = 0));
    edges.forEach(({ from, to }) => (lastReader[from] = Math.max(lastReader[from], to)));
    const parts = [];
    let first = 0, reach = 0;
    nodes.forEach((_, i) => {
      if (i - first >= PART && reach <= i) {
        parts.push([first, i]);
        first = i;
      }
      reach = Math.max(reach, lastReader[i]);
    });
    return [...parts, [first, nodes.length - 1]];
  }

  // Gives every node its x and y, and every edge its points; returns the size of the whole graph.
  function layOut(graph) {
    const { nodes, edges } = graph;
    const bounds = { left: 0, right: 0, bottom: 0 };
    for (const [first, last] of partsOf(graph)) {
      if (last - first >= LARGEST) return null;
      const layout = new dagre.graphlib.Graph({ multigraph: true });
      layout.setGraph({ rankdir: "TB", nodesep: 28, ranksep: 30, edgesep: 16 });
      for (let i = first; i <= last; i++) layout.setNode(String(i), { width: WIDTH, height: HEIGHT });
      const inside = edges.filter(({ from, to }) => first <= from && from < last && first < to && to <= last);
      inside.forEach((edge, i) => layout.setEdge(String(edge.from), String(edge.to), {}, String(i)));
      dagre.layout(layout);
      const begin = layout.node(String(first)), joint = nodes[first];
      const moved = (p) => (first ? { x: p.x - begin.x + joint.x, y: p.y - begin.y + joint.y } : { x: p.x, y: p.y });
      for (let i = first; i <= last; i++) Object.assign(nodes[i], moved(layout.node(String(i))));
      inside.forEach((edge, i) => {
        edge.points = layout.edge({ v: String(edge.from), w: String(edge.to), name: String(i) }).points.map(moved);
      });
    }
    for (const { x, y } of [...nodes, ...edges.flatMap((edge) => edge.points || [])]) {
      bounds.left = Math.min(bounds.left, x - WIDTH / 2 - MARGIN);
      bounds.right = Math.max(bounds.right, x + WIDTH / 2 + MARGIN);
      bounds.bottom = Math.max(bounds.bottom, y + HEIGHT / 2 + MARGIN);
    }
    return bounds;
  }

  function drawNode(node, { x, y }) {
    const isOp = node.row !== null;
    const top = { x: x - WIDTH / 2, y: y - HEIGHT / 2 };
    const attributes = isOp ? { href: `#row-${node.row}`, "data-row": node.row } : {};
    return element(
      isOp ? "a" : "g",
      { ...attributes, class: `node ${node.precision || ""} ${isOp ? "" : "end"}`, draggable: "false" },
      element("title", {}, node.title),
      element("rect", { ...top, width: WIDTH, height: HEIGHT, rx: isOp ? 8 : HEIGHT / 2, class: "box" }),
      element("rect", { x: top.x + 5, y: top.y + 8, width: 6, height: HEIGHT - 16, rx: 2, class: "mark" }),
      element("text", { x: top.x + 19, y: y - 4 }, node.label),
      element("text", { x: top.x + 19, y: y + 13, class: "detail" }, node.detail),
    );
  }

  // Draws the graph with its corner in the origin, and returns its size; null if the graph is empty or too large.
  function drawGraph(scene) {
    const graph = JSON.parse(byId("graph-data").textContent);
    const bounds = graph.nodes.length ? layOut(graph) : null;
    if (!bounds) return null;
    const at = ({ x, y }) => ({ x: x - bounds.left, y: y + MARGIN });
    for (const edge of graph.edges.filter(({ points }) => points)) {
      const line = { d: path(edge.points.map(at)), class: `edge ${edge.carries}`, "marker-end": "url(#arrow)" };
      scene.append(element("path", line, element("title", {}, edge.title)));
    }
    for (const node of graph.nodes) scene.append(drawNode(node, at(node)));
    return { width: bounds.right - bounds.left, height: bounds.bottom + MARGIN };
  }

  function setUpGraph() {
    const scene = byId("scene"), canvas = scene.ownerSVGElement;
    const size = drawGraph(scene);
    byId("not-drawn").toggleAttribute("hidden", Boolean(size));
    if (!size) return () => {};
    const view = Panzoom(scene, { canvas: true, cursor: "grab", minScale: 0.02, maxScale: 6, handleStartEvent: () => {} });

    // Panzoom multiplies distances by the scale, too.
    const place = (scale, left, top, animate = false) => {
      view.zoom(scale, { animate });
      view.pan(left / view.getScale(), top / view.getScale(), { animate });
    };
    const box = () => canvas.getBoundingClientRect();
    // The left edge of the whole graph if it is narrower than its frame, else the edge that shows x in the middle.
    const leftFor = (scale, x) => (box().width - scale * (scale * size.width <= box().width ? size.width : 2 * x)) / 2;
    const middle = ({ x, width }) => x + width / 2;
    const readable = () => {
      const scale = Math.min(1, Math.max(0.6, box().width / size.width));
      place(scale, leftFor(scale, middle(scene.querySelector(".node").getBBox())), 0);
    };
    const fit = () => {
      const scale = Math.min(1, box().width / size.width, box().height / size.height);
      place(scale, leftFor(scale, 0), (box().height - scale * size.height) / 2, true);
    };
    const reveal = (node, animate) => {
      const { y, height } = node.getBBox();
      const scale = Math.max(view.getScale(), 0.6);
      place(scale, leftFor(scale, middle(node.getBBox())), box().height / 2 - scale * (y + height / 2), animate);
    };

    // Panzoom moves the scene once by itself after the script has run.
    setTimeout(readable);
    const zoomAtCentre = (factor) => {
      const { left, top, width, height } = box();
      view.zoomToPoint(view.getScale() * factor, { clientX: left + width / 2, clientY: top + height / 2 });
    };
    byId("zoom-in").addEventListener("click", () => zoomAtCentre(1.4));
    byId("zoom-out").addEventListener("click", () => zoomAtCentre(1 / 1.4));
    byId("fit").addEventListener("click", fit);
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      if (event.ctrlKey || event.metaKey) {
        view.zoomWithWheel(event);
      } else {
        const scale = view.getScale();
        view.pan(-event.deltaX / scale, -event.deltaY / scale, { relative: true });
      }
    }, { passive: false });

    // When a user drags the graph by a node, the browser must neither drag the link nor follow it.
    let pressed = null;
    canvas.addEventListener("dragstart", (event) => event.preventDefault());
    canvas.addEventListener("pointerdown", (event) => (pressed = event));
    canvas.addEventListener("click", (event) => {
      if (pressed && Math.hypot(event.clientX - pressed.clientX, event.clientY - pressed.clientY) > 5) {
        event.preventDefault();
        event.stopPropagation();
      }
    }, true);
    byId("graph").addEventListener("focusin", (event) => {
      if (event.target.matches(".node:focus-visible")) reveal(event.target, true);
    });

    // A printed page cannot be panned, so the whole graph is drawn.
    let kept = "";
    window.addEventListener("beforeprint", () => {
      kept = scene.style.transform;
      scene.style.transform = "none";
      canvas.setAttribute("viewBox", `0 0 ${size.width} ${size.height}`);
      canvas.style.maxWidth = `${0.6 * size.width}px`;
    });
    window.addEventListener("afterprint", () => {
      scene.style.transform = kept;
      canvas.removeAttribute("viewBox");
      canvas.style.maxWidth = "";
    });
    return reveal;
  }

  // Links lead to #row-N from the graph and to #node-N from a row; either selects layer N everywhere.
  function setUpSelection(reveal) {
    const select = () => {
      const [, end, row] = /^#(row|node)-(\d+)$/.exec(window.location.hash) || [];
      all(".selected").forEach((each) => each.classList.remove("selected"));
      if (!end) return;
      all(`[data-row="${row}"]`).forEach((each) => each.classList.add("selected"));
      const node = document.querySelector(`#scene [data-row="${row}"]`);
      if (node) reveal(node, true);
      if (end === "row") byId(`row-${row}`)?.scrollIntoView();
      else byId("graph").scrollIntoView({ block: "nearest" });
    };
    document.addEventListener("click", (event) => {
      const holder = event.target.closest(".profile g, #layers tbody tr");
      if (holder && !event.target.closest("a")) {
        window.location.hash = `${holder.matches("tr") ? "node" : "row"}-${holder.dataset.row}`;
      }
      // A second click on a row or node does not change the address, but its target may have been scrolled away.
      if (holder || event.target.closest("a[href^='#']")) setTimeout(select);
    });
    window.addEventListener("hashchange", select);
    setTimeout(select);
  }

  setUpTheme();
  setUpPlaces();
  setUpSorting();
  setUpSelection(setUpGraph());
})();
