"use strict";
// Optional enhancements: without scripts, the page still shows everything.
(() => {
  const one = (selector) => document.querySelector(selector);
  const all = (selector) => [...document.querySelectorAll(selector)];

  all("[data-needs-script]").forEach((each) => { each.hidden = false; });

  const root = document.documentElement;
  one("#theme").addEventListener("click", () => {
    const shown = root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
    root.dataset.theme = shown === "dark" ? "light" : "dark";
  });

  const setOpen = (open) => all("main details").forEach((each) => { each.open = open; });
  one("#expand").addEventListener("click", () => setOpen(true));
  one("#collapse").addEventListener("click", () => setOpen(false));

  // A link to something collapsed expands it.
  const reveal = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    for (let each = target; each; each = each.parentElement) if (each.tagName === "DETAILS") each.open = true;
    const inside = target.querySelector(":scope > details");
    if (inside) inside.open = true;
    target.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  all("a[href^='#']").forEach((link) => link.addEventListener("click", (event) => {
    event.preventDefault();  // in a srcdoc iframe, the link would otherwise navigate the parent page
    location.hash = link.hash;
    reveal();
  }));
  reveal();

  const filter = one("#filter");
  if (filter) {
    const care = one("#care");
    const columns = all(".column");
    const show = () => {
      const wanted = filter.value.trim().toLowerCase();
      let n = 0;
      columns.forEach((each) => {
        const fits = each.dataset.name.toLowerCase().includes(wanted) && !(care.checked && each.dataset.light === "good");
        each.hidden = !fits;
        n += fits;
      });
      one("#shown").textContent = `${n} of ${columns.length} shown`;
    };
    filter.addEventListener("input", show);
    care.addEventListener("change", show);
    show();
  }

  all(".copy").forEach((button) => button.addEventListener("click", async () => {
    const code = button.parentElement.querySelector("code");
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "Copied";
    } catch {  // not allowed: select the code, so that the user can copy it
      getSelection().selectAllChildren(code);
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  }));

  // For browsers whose style sheets cannot unfold what is printed.
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = all("details:not([open])");
    closed.forEach((each) => { each.open = true; });
  });
  addEventListener("afterprint", () => closed.forEach((each) => { each.open = false; }));
})();
