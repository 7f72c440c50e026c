// Draws the blocks of code in the language mermaid as diagrams, in the colours that the page has.
(() => {
  const blocks = [...document.querySelectorAll(".highlight-mermaid")].map((block) => {
    const source = block.querySelector("pre").textContent;
    const diagram = document.createElement("pre");
    diagram.className = "mermaid";
    block.replaceWith(diagram);
    return { diagram, source };
  });
  const isDark = () => {
    const theme = document.body.dataset.theme;
    return theme === "auto" ? matchMedia("(prefers-color-scheme: dark)").matches : theme === "dark";
  };
  const draw = async () => {
    // The dark theme's own colour behind a label is too near to the label's.
    const dark = { theme: "dark", themeVariables: { edgeLabelBackground: "#1a1c1e" } };
    mermaid.initialize({ startOnLoad: false, ...(isDark() ? dark : { theme: "neutral" }) });
    for (const [index, { diagram, source }] of blocks.entries()) {
      diagram.innerHTML = (await mermaid.render(`diagram-${index}`, source)).svg;
    }
  };
  if (blocks.length > 0) {
    draw();
    new MutationObserver(draw).observe(document.body, { attributeFilter: ["data-theme"] });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  }
})();
