import assert from "node:assert/strict";
import { test } from "node:test";
import { atOnce } from "@coxswain/apimachinery/process/event-loop/steps";
import { cpuMsOf } from "@coxswain/apimachinery/testing/cpu-time";
import { rewriteLinks } from "./html-links.ts";

for (const { name, page, want } of [
  { name: "a link", page: `<a href="/x">x</a>`, want: `<a href="[/x]">x</a>` },
  { name: "without quotes", page: `<a href=/x class=y>x</a>`, want: `<a href=[/x] class=y>x</a>` },
  { name: "in single quotes, upper case, spaces", page: `<A\n HREF = '/x' >`, want: `<A\n HREF = '[/x]' >` },
  { name: "several in one tag", page: `<img src="/a" alt="/b" usemap="/c"/>`, want: `<img src="[/a]" alt="/b" usemap="[/c]"/>` },
  { name: "an attribute that is a link elsewhere", page: `<p href="/x" src="/y">`, want: `<p href="/x" src="/y">` },
  { name: "a quoted >", page: `<a title="a > b" href="/x">`, want: `<a title="a > b" href="[/x]">` },
  { name: "inside a comment", page: `<!-- <a href="/x"> --><a href="/y">`, want: `<!-- <a href="/x"> --><a href="[/y]">` },
  {
    name: "in the text of a script, but not in its tag",
    page: `<script src="/s">"<a href='/x'>"</script><a href="/y">`,
    want: `<script src="[/s]">"<a href='/x'>"</script><a href="[/y]">`,
  },
  {
    name: "behind a script that ends in another case",
    page: `<SCRIPT>"<a href='/x'>"</Script><a href="/y">`,
    want: `<SCRIPT>"<a href='/x'>"</Script><a href="[/y]">`,
  },
  { name: "behind a slash", page: `<a/href="/x"/>`, want: `<a/href="[/x]"/>` },
  { name: "names of an object's prototype", page: `<constructor href="/x">`, want: `<constructor href="/x">` },
  { name: "a tag that is cut off", page: `<a href="/x">ok</a><a href="/y`, want: `<a href="[/x]">ok</a><a href="/y` },
  { name: "a comment that is cut off", page: `<!-- <a href="/x">`, want: `<!-- <a href="/x">` },
  { name: "text that only looks like a tag", page: `1 < 2 <> </a href="/x"> <a>`, want: `1 < 2 <> </a href="/x"> <a>` },
  {
    name: "a tag in the text of the last letter's attribute",
    page: `<z title='<a href="/x">'>`,
    want: `<z title='<a href="/x">'>`,
  },
  { name: "a tag behind a < without a letter", page: `<1 title='<a href="/x">'>`, want: `<1 title='<a href="[/x]">'>` },
  { name: "bytes beyond ASCII", page: `\xff\xc0<a href="/\xe9">\xdf`, want: `\xff\xc0<a href="[/\xe9]">\xdf` },
]) {
  test(`links of a page: ${name}`, () => assert.equal(atOnce(rewriteLinks(page, (link) => `[${link}]`)), want));
}

test("a page made to be slow is rewritten in linear time", () => {
  for (const bait of ["<a ", "<a href=", "<!--", "<script>", "<a href='", "<"]) {
    const page = bait.repeat(200_000);
    const tookMs = cpuMsOf(() => atOnce(rewriteLinks(page, (link) => link)));
    assert.ok(tookMs < 2000, `${bait} ${tookMs} ms`);
  }
});
