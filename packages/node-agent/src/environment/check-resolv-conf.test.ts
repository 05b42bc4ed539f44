import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { checkResolvConf, reportResolvConf } from "./check-resolv-conf.ts";

const many = (count: number): string => Array.from({ length: count }, (_, i) => `d${i}.test`).join(" ");
const label = "a".repeat(63);

for (const { name, search, domain = "cluster.local", want } of [
  { name: "three domains beside the cluster's", search: many(3), want: undefined },
  { name: "four beside the cluster's", search: many(4), want: "contains search line consisting of more than 3 domains!" },
  { name: "six without a cluster domain", search: many(6), domain: "", want: undefined },
  {
    name: "seven without a cluster domain",
    search: many(7),
    domain: "",
    want: "contains search line consisting of more than 6 domains!",
  },
  { name: "one that is as long as it may be", search: "a".repeat(253), want: undefined },
  {
    name: "one that is too long",
    search: "a".repeat(254),
    want: "contains a search path which length is more than allowed 253!",
  },
  { name: "two that are as long together as they may be", search: `${"a".repeat(253)} bc`, want: undefined },
  {
    name: "two that are too long together",
    search: `${[label, label, label].join(".")} ${[label, label].join(".")}`,
    want: "contains search line which length is more than allowed 256 chars!",
  },
] as { name: string; search: string; domain?: string; want: string | undefined }[]) {
  test(`search domains: ${name}`, async (t) => {
    const dir = mkdtempSync(join(tmpdir(), "cox-resolv-"));
    t.after(() => rmSync(dir, { recursive: true }));
    const path = join(dir, "resolv.conf");
    writeFileSync(path, `nameserver 192.0.2.1\nsearch ${search}\n`);
    const problem = await checkResolvConf(path, domain);
    assert.equal(problem?.replace(/^Resolv\.conf file ['"].*?['"] /, ""), want);
    if (problem !== undefined) assert.ok(problem.includes(path));
  });
}

test("search domains: a missing file is reported", async () => {
  assert.equal(await checkResolvConf("/no/resolv.conf", ""), "open /no/resolv.conf: no such file or directory");
  assert.match((await checkResolvConf("/", "")) ?? "", /^EISDIR/, "another failure is reported as it is");
});

test("a resolver configuration without room for the cluster's search domains is an event of the node; one with room, or none, is not", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "cox-resolv-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const full = join(dir, "full");
  const short = join(dir, "short");
  writeFileSync(full, `search ${many(4)}\n`);
  writeFileSync(short, `search ${many(3)}\n`);
  const events: string[] = [];
  const notify = { node: (...parts: string[]) => void events.push(parts.join(" ")) };
  for (const resolvConf of [full, short, "", full])
    await reportResolvConf({ resolvConf, clusterDomain: "cluster.local" }, notify);
  const event = `Warning CheckLimitsForResolvConf Resolv.conf file '${full}' contains search line consisting of more than 3 domains!`;
  assert.deepEqual(events, [event, event]);
});
