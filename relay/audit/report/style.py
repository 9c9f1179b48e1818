"""The page's style: system fonts, light or dark as the reader has it, legible on paper."""

from typing import Final

# Series colours of both modes: at least 3:1 against their ground, told apart also without red and green.
STYLE: Final = """
:root{color-scheme:light dark;--ground:#fff;--text:#1b1f24;--muted:#57606a;--line:#d8dee4;--soft:#f5f7f9;--good:#116329;
--good-ground:#e4f6e8;--bad:#a40e26;--bad-ground:#ffebe9;--warn:#7a4d00;
--s0:#2b6cb0;--s1:#d97706;--s2:#0f766e;--s3:#9333ea;--s4:#be185d;--s5:#64748b}
@media(prefers-color-scheme:dark){:root{--ground:#14181d;--text:#e6edf3;--muted:#9aa5b1;--line:#343b44;--soft:#1c2229;
--good:#7ee2a0;--good-ground:#12321d;--bad:#ff9a94;--bad-ground:#46171a;--warn:#f2c063;
--s0:#5aa2e6;--s1:#f0a030;--s2:#3fb8a5;--s3:#bb86fc;--s4:#f472b6;--s5:#94a3b8}}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--text);font:15px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}
main{max-width:1060px;margin:0 auto;padding:28px 20px 60px}
h1{font-size:26px;line-height:1.25;margin:0}h2{font-size:19px;margin:34px 0 8px;border-bottom:1px solid var(--line);
padding-bottom:4px}h3{font-size:15px;margin:22px 0 6px}
.what{color:var(--muted);margin:4px 0 14px}
.verdict{padding:11px 14px;border-radius:6px;font-weight:600;margin:0;overflow-wrap:anywhere}
.verdict.fine{background:var(--good-ground);color:var(--good)}.verdict.found{background:var(--bad-ground);color:var(--bad)}
dl{display:grid;grid-template-columns:repeat(auto-fill,minmax(300px,1fr));gap:2px 24px;margin:8px 0}
dl div{display:flex;gap:10px}dt{color:var(--muted);flex:0 0 92px}dd{margin:0;overflow-wrap:anywhere}
figure{margin:16px 0 24px}figcaption{font-weight:600;margin-bottom:6px}svg{display:block;width:100%;height:auto}
svg text{font:12px system-ui,sans-serif;fill:var(--text)}svg text.value{fill:var(--muted);font-variant-numeric:tabular-nums}
.grid{stroke:var(--line);stroke-width:1}.hit{fill:transparent}g:hover>.hit{fill:var(--soft)}
.s0{fill:var(--s0)}.s1{fill:var(--s1)}.s2{fill:var(--s2)}.s3{fill:var(--s3)}.s4{fill:var(--s4)}.s5{fill:var(--s5)}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:4px 18px;margin:6px 0;padding:0}
.swatch{display:inline-block;width:11px;height:11px;border-radius:2px;margin-right:6px}
.b0{background:var(--s0)}.b1{background:var(--s1)}.b2{background:var(--s2)}.b3{background:var(--s3)}
.b4{background:var(--s4)}.b5{background:var(--s5)}
.scroll{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:13.5px}
th{text-align:left;color:var(--muted);font-weight:600;border-bottom:1px solid var(--line);padding:5px 12px 5px 0}
td{border-bottom:1px solid var(--line);padding:5px 12px 5px 0;vertical-align:top;overflow-wrap:anywhere}
th.n,td.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
code{font:12.5px ui-monospace,Menlo,Consolas,monospace;unicode-bidi:isolate}
.note,.none{color:var(--muted);font-size:13.5px;margin:6px 0}.complete{margin:8px 0}
code.short{white-space:nowrap}.error{color:var(--bad);font-weight:600;white-space:nowrap}.warning{color:var(--warn);font-weight:600;white-space:nowrap}
@media print{main{max-width:none;padding:0}figure,tr{break-inside:avoid}}
"""
