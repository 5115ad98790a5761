//! How a page looks: the reader's own fonts, dark and light, on paper and on a phone. On paper nothing can be opened, so all is
//! open but the ends of the logs and what is told twice; a browser that cannot open it prints the first line of each iteration.

pub const STYLE: &str = r#"
:root{color-scheme:light dark;--bg:#fbfaf8;--card:#fff;--ink:#1d1c1a;--soft:#65615a;--line:#e4e0d8;--code:#f1eee8;
--good:#1a7f4b;--warn:#a35c00;--bad:#b3261e;--calm:#3b5b8c;--work:#7d9cc9;--wait:#e2c27a;--pause:#cfcac0;--failure:#cf4d43;
--stopped:#ece8e0;--give:#7a4fa3}
@media screen and (prefers-color-scheme:dark){:root{--bg:#161618;--card:#1d1e20;--ink:#e8e6e1;--soft:#9d9a93;--line:#33332f;--code:#27282b;
--good:#5fc58f;--warn:#e2a84b;--bad:#f1796f;--calm:#8fb0e0;--work:#4a6c9e;--wait:#8a6d2b;--pause:#47453f;--failure:#c2493f;
--stopped:#28282a;--give:#b796dd}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--bg);color:var(--ink);font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif;
font-variant-numeric:tabular-nums;overflow-wrap:break-word}
main{max-width:58rem;margin:0 auto;padding:1.6rem 1.25rem 4rem}
.kicker{display:flex;flex-wrap:wrap;gap:.2rem .9rem;margin:0 0 .9rem;color:var(--soft);font-size:.82rem}
.kicker b{color:var(--ink);font-weight:600}
h1{font-size:1.5rem;line-height:1.32;font-weight:600;margin:0 0 .8rem;letter-spacing:-.011em;text-wrap:pretty;
border-left:.3rem solid var(--tone);padding-left:.85rem}
h1 code{font-size:.86em;font-weight:500}
h1 .q{font-weight:400}
.task{margin:0 0 1.2rem;color:var(--soft);white-space:pre-wrap;padding-left:1.15rem;max-height:9.2em;overflow:auto}
.good{--tone:var(--good)}.warn{--tone:var(--warn)}.bad{--tone:var(--bad)}.calm{--tone:var(--calm)}
dl.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(7.2rem,1fr));gap:1px;margin:0 0 .6rem;background:var(--card);
border:1px solid var(--line);border-radius:.5rem;overflow:hidden}
dl.figures div{box-shadow:0 0 0 1px var(--line);padding:.5rem .8rem .55rem}
dt{font-size:.74rem;color:var(--soft)}
dd{margin:0;font-weight:600}dd small{font-weight:400;font-size:.84em;color:var(--soft);white-space:nowrap}
section{margin-top:2.2rem}
h2{font-size:1rem;font-weight:650;margin:0 0 .6rem;padding-bottom:.3rem;border-bottom:1px solid var(--line)}
h3{font-size:.84rem;font-weight:600;margin:1.1rem 0 .35rem;color:var(--soft)}
p{margin:.4rem 0}
.soft,.none{color:var(--soft)}
.small{font-size:.86rem}
code,pre{font-family:ui-monospace,"SF Mono",SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}
code{font-size:.87em;background:var(--code);padding:.08em .32em;border-radius:.25rem;unicode-bidi:isolate;overflow-wrap:anywhere}
.q{unicode-bidi:isolate}
pre{font-size:.8rem;line-height:1.45;background:var(--code);border-radius:.4rem;padding:.6rem .75rem;margin:.4rem 0;white-space:pre-wrap;
overflow-wrap:anywhere;max-height:22rem;overflow:auto;unicode-bidi:plaintext}
pre.said{font:inherit;font-size:.92rem;background:none;border-left:2px solid var(--line);border-radius:0;padding:.1rem 0 .1rem .8rem}
ul.needs{list-style:none;margin:0;padding:0}
ul.needs li{border-left:.2rem solid var(--warn);background:var(--card);padding:.5rem .8rem;margin:0 0 .45rem;border-radius:0 .35rem .35rem 0}
.do{display:block;margin-top:.3rem}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:.9rem}
th{font-weight:500;color:var(--soft);font-size:.78rem;text-align:left;white-space:nowrap}
th,td{padding:.32rem .9rem .32rem 0;border-bottom:1px solid var(--line);vertical-align:top}
tr:last-child td{border-bottom:0}
td.n,th.n{text-align:right;white-space:nowrap}
th:last-child,td:last-child{padding-right:0}
.state{white-space:nowrap;color:var(--tone,var(--soft))}
.state::before{content:"";display:inline-block;width:.55em;height:.55em;border-radius:50%;background:currentColor;margin-right:.42em}
.plus{color:var(--good)}.minus{color:var(--bad)}
.churn{display:inline-block;height:.55em;min-width:2px;background:var(--work);border-radius:1px;vertical-align:middle}
svg text{fill:var(--soft);font-size:12px}
svg.strip,svg.money,svg.trend{display:block;overflow:visible}
svg .axis{stroke:var(--line)}
.strip>rect:first-child{rx:3px}
.work{fill:var(--work);background:var(--work)}.wait{fill:var(--wait);background:var(--wait)}.pause{fill:var(--pause);background:var(--pause)}
.failure{fill:var(--failure);background:var(--failure)}.stopped{fill:var(--stopped);background:var(--stopped)}
.end{stroke:var(--bg);stroke-width:1}
svg.mark{overflow:visible}
.warned path{fill:var(--warn)}.tripped path{fill:var(--bad)}.reset path{fill:var(--good)}.answer path{fill:var(--give)}
.guidance line{stroke:var(--give);stroke-width:1.5}.guidance circle{fill:var(--give)}
.guidance circle.given{fill:var(--bg);stroke:var(--give);stroke-width:1.5}.undelivered line{stroke-dasharray:3 3}
.legend{display:flex;flex-wrap:wrap;gap:.15rem 1.1rem;margin:.5rem 0 0;font-size:.84rem;color:var(--soft)}
.legend i{display:inline-block;width:.75em;height:.75em;border-radius:2px;margin-right:.4em;vertical-align:-.05em}
.legend svg{width:12px;height:10px;overflow:visible;vertical-align:-.02em;margin-right:.35em}
svg.money rect,svg.trend rect{fill:var(--work)}svg.money line{stroke:var(--calm);stroke-width:1.5}svg.money line.axis{stroke:var(--line);stroke-width:1}
svg.trend rect.good{fill:var(--good)}svg.trend rect.warn{fill:var(--warn)}svg.trend rect.bad{fill:var(--bad)}svg.trend rect.calm{fill:var(--work)}
details{border-bottom:1px solid var(--line)}
details>summary{cursor:pointer;padding:.42rem 0;list-style:none}
details>summary::-webkit-details-marker{display:none}
details>summary:hover{background:var(--code)}
summary:focus-visible{outline:2px solid var(--calm);outline-offset:2px}
.it>summary{display:grid;grid-template-columns:2.4rem 6.6rem 4rem 4.4rem 1fr;gap:0 .7rem;font-size:.9rem;align-items:baseline}
.it>summary .num{font-weight:600;text-align:right}
.it>summary .what{color:var(--soft);overflow:hidden;text-overflow:ellipsis;white-space:nowrap;min-width:0}
.it>summary .r{text-align:right;color:var(--soft);white-space:nowrap}
.it[open]>summary .what{visibility:hidden}
.body{padding:.1rem 0 .9rem 3.1rem}
.body h3:first-child{margin-top:.2rem}
.log{border:0;margin-top:.7rem}
.log>summary{font-size:.84rem;color:var(--calm);padding:.1rem 0}
.log>summary::before,.more>summary::before{content:"▸ "}.log[open]>summary::before,.more[open]>summary::before{content:"▾ "}
.log ol{list-style:none;margin:.3rem 0 0;padding:0;font-size:.84rem}
.log li{display:grid;grid-template-columns:3.4rem 4.4rem 1fr;gap:.6rem;padding:.16rem 0;border-top:1px solid var(--line)}
.log li span{color:var(--soft)}
.log li div{white-space:pre-wrap;overflow-wrap:anywhere;unicode-bidi:plaintext;min-width:0}
.log li.fail div{color:var(--bad)}.log li.tool div{font-family:ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:.93em}
ul.plain{margin:.2rem 0;padding:0;list-style:none}
ul.plain li{padding:.12rem 0}
.more>summary{color:var(--calm);font-size:.86rem}.more{border:0}
.steps td:first-child{width:44%}.commits td{overflow-wrap:anywhere}.commits td:first-child{width:3.6rem}td ul.plain{margin:0}td ul.plain li{padding:0}
footer{margin-top:3rem;color:var(--soft);font-size:.8rem}
@media(max-width:40rem){body{font-size:15px}main{padding:1.1rem .9rem 3rem}h1{font-size:1.24rem}
.it>summary{grid-template-columns:1.9rem 1fr auto auto}.it>summary .what{grid-column:2/-1}.it[open]>summary .what{display:none}
.body{padding-left:0}.log li{grid-template-columns:3rem 1fr}.log li span+span{display:none}
table.fold thead{display:none}table.fold tr{display:block;padding:.45rem 0;border-bottom:1px solid var(--line)}
table.fold td{display:inline-block;border:0;padding:0 .9rem 0 0;text-align:left}table.fold td:first-child{display:block;width:auto}
table.fold td[data-l]::before{content:attr(data-l) " ";color:var(--soft);font-size:.8rem}}
@page{margin:15mm 14mm}
@media print{:root{--bg:#fff;--card:#fff;--soft:#55514a;color-scheme:light}html,body{background:#fff}body{font-size:10pt;line-height:1.42}
main{max-width:none;padding:0}h1{font-size:15pt}dl.figures{grid-template-columns:repeat(auto-fit,minmax(5.6rem,1fr))}section{margin-top:1.4rem}footer{margin-top:1.6rem}
pre,.task{max-height:none;overflow:visible}.scroll{overflow:visible}pre{border:1px solid var(--line)}pre.said{border-width:0 0 0 2px}
.log,.screen-only{display:none}.more>summary::before,.more[open]>summary::before{content:""}.body{padding-bottom:.5rem}
h2,h3,summary,thead,dt{break-after:avoid}h1,tr,svg,li,dl,.legend{break-inside:avoid}p,pre{orphans:3;widows:3}
h1,dl,ul.needs li,rect,i,svg,.churn,.state::before,code,pre{print-color-adjust:exact;-webkit-print-color-adjust:exact}
@supports selector(::details-content){details::details-content{content-visibility:visible;display:block}.it>summary .what{visibility:hidden}}}
"#;
