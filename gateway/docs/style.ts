/** The style of the page at `/docs`, in the console's colours. */
export const style = `
:root {
  color-scheme: light dark;
  --page: light-dark(#f6f5fb, #12111b);
  --surface: light-dark(#ffffff, #1b1a28);
  --text: light-dark(#1d1b2e, #ecebf6);
  --quiet: light-dark(#5a5770, #aaa7c2);
  --line: light-dark(#e2e0ee, #302e45);
  --accent: light-dark(#5443d6, #aaa0ff);
  --green: light-dark(#0b6336, #84e5ad);
  --amber: light-dark(#754900, #f7c965);
  --danger: light-dark(#b3202f, #ff9aa2);
  font: 16px / 1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif;
  background: var(--page);
  color: var(--text);
}
body { max-width: 60rem; margin: 0 auto; padding: 1rem; overflow-wrap: anywhere; }
h1, h2, h3, h4, p { margin: 0.4rem 0; }
h1 { font-size: 1.6rem; }
h2 { font-size: 1.2rem; margin-top: 1.2rem; }
h3 { font-size: 1rem; font-weight: normal; display: inline; }
h4 { font-size: 1rem; margin-top: 1rem; }
small, dt, summary span { color: var(--quiet); }
a { color: var(--accent); }
code { font: 0.85rem ui-monospace, SFMono-Regular, "Cascadia Code", "DejaVu Sans Mono", monospace; color: var(--text); }
pre { white-space: pre-wrap; user-select: all; padding: 0.5rem 0.7rem; border-radius: 0.5rem; background: var(--page); }
details { background: var(--surface); border: 1px solid var(--line); border-radius: 0.5rem; margin: 0.3rem 0; padding: 0 0.7rem; }
summary { padding: 0.4rem 0; cursor: pointer; }
summary b { display: inline-block; min-width: 4.2rem; font-size: 0.85rem; color: var(--accent); }
.POST { color: var(--green); }
.PUT, .PATCH { color: var(--amber); }
.DELETE { color: var(--danger); }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
:target { scroll-margin-top: 4rem; }
dl, dd { margin: 0; }
dl > div { border-top: 1px solid var(--line); padding: 0.4rem 0; }
dd ul { margin: 0; padding-left: 1.2rem; }
table { border-collapse: collapse; }
th, td { text-align: left; padding: 0.2rem 1rem 0.2rem 0; border-bottom: 1px solid var(--line); }
`;
