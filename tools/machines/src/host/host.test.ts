import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { addressOfDefaultRoute } from "./facts.ts";
import { linesOf, linkTarget, missingFiles, writeFiles, writeLink } from "./files.ts";
import { flagsIn, flagWords, header, quoted, unitFlags, unitWithFlags } from "./units.ts";
import { until } from "./until.ts";

const unit = readFileSync(join(import.meta.dirname, "../../../deploy/systemd/kube-apiserver.service"), "utf8");

test("flags replace the unit's own or are added; other lines are kept", () => {
  const text = unitWithFlags(unit, { "secure-port": "7443", "advertise-address": "10.0.0.1", "audit-log-format": "a b" });
  assert.deepEqual(unitFlags(text.replace('"--audit-log-format=a b"', "--audit-log-format=x")), {
    ...unitFlags(unit),
    "secure-port": "7443",
    "advertise-address": "10.0.0.1",
    "audit-log-format": "x",
  });
  assert.match(text, /^ExecStart=\/usr\/bin\/kube-apiserver \\\n {2}--advertise-address=10\.0\.0\.1 \\\n/m);
  assert.match(text, /^ {2}"--audit-log-format=a b" \\$/m);
  assert.match(text, /^ {2}\$KUBE_APISERVER_ARGS\nRestart=always$/m);
  const others = (all: string): string[] => all.split("\n").filter((line) => !/^ {2}|^ExecStart=|^# Written/.test(line));
  assert.deepEqual(others(text), others(unit));
});

test("systemd reads a quoted word unchanged", () => {
  assert.equal(quoted("--a=b"), "--a=b");
  assert.equal(quoted('--a=b "c"\\'), '"--a=b \\"c\\"\\\\"');
  assert.equal(quoted("--a=5%$X"), "--a=5%%$$X");
});

test("a flag without a value is true, a quoted one is read as it was meant, and words that are no flags stay behind", () => {
  const text = 'A\nExecStart=/usr/bin/x \\\n  --b \\\n  "--a=1 \\"2\\" 5%% $$X" \\\n  --c=d=e \\\n  $ARGS \\\n  run\nB\n';
  const flags = { a: '1 "2" 5% $X', b: "true", c: "d=e" };
  assert.deepEqual(unitFlags(text), flags);
  assert.deepEqual(flagsIn(["x", "--b", "-v", "--c=d=e"]), { b: "true", c: "d=e" });
  assert.deepEqual(flagWords({ c: "d=e", b: "true", a: "" }), ["--a=", "--b=true", "--c=d=e"]);
  assert.equal(
    unitWithFlags(text, { aa: "z" }),
    `${header}A\nExecStart=/usr/bin/x \\\n  "--a=1 \\"2\\" 5%% $$X" \\\n  --aa=z \\\n  --b=true \\\n  --c=d=e \\\n  $ARGS \\\n  run\nB\n`,
  );
});

test("the address is that of the interface of the best default route", () => {
  const route = (device: string, destination: string, metric: number): string =>
    `${device}\t${destination}\t0100000A\t0003\t0\t0\t${metric}\t${destination === "00000000" ? "00000000" : "00FFFFFF"}\t0\t0\t0`;
  const interfaces = {
    lo: [{ address: "127.0.0.1", internal: true }],
    a: [
      { address: "fd00::1", internal: false },
      { address: "10.0.0.1", internal: false },
    ],
    b: [{ address: "10.0.1.1", internal: false }],
  };
  const routes = ["Iface\tDestination", route("a", "00000000", 200), route("b", "00000000", 100), route("a", "0000000A", 0)];
  assert.equal(addressOfDefaultRoute(routes, interfaces), "10.0.1.1");
  assert.equal(addressOfDefaultRoute(routes.slice(0, 2), interfaces), "10.0.0.1");
  assert.equal(addressOfDefaultRoute([routes[0] as string, routes[3] as string], interfaces), undefined);
});

test("a file is written when it is missing or another, with its mode, and left alone when it is the same", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "cox-files-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const [same, other, missing] = ["same", "other", "missing"].map((name) => join(folder, name)) as [string, string, string];
  writeFileSync(same, "a");
  writeFileSync(other, "b");
  const wanted = [
    { path: same, content: "a", mode: 0o600 },
    { path: other, content: "a" },
    { path: missing, content: "a", mode: 0o600 },
  ];
  const { ino } = statSync(same);
  assert.deepEqual(missingFiles(wanted), [`change ${other}`, `write ${missing}`]);
  writeFiles(wanted);
  assert.deepEqual(missingFiles(wanted), []);
  assert.deepEqual([statSync(same).ino, readFileSync(other, "utf8"), statSync(missing).mode & 0o777], [ino, "a", 0o600]);
  assert.deepEqual([linesOf(other), linesOf(join(folder, "none"))], [["a"], []]);
});

test("a link names its target, also one that is not there; what is no link names none", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "cox-links-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const link = join(folder, "link");
  assert.equal(linkTarget(link), undefined);
  writeFileSync(link, "a file");
  assert.equal(linkTarget(link), "");
  for (const target of ["/none", "other"]) {
    writeLink(link, target);
    assert.equal(linkTarget(link), target);
  }
});

test("waiting ends with the last error and the remedy, or at once on a permanent error", async () => {
  const options = { timeoutMs: 1, everyMs: 1, what: "it", remedy: "look" };
  await assert.rejects(
    until(() => Promise.reject(new Error("no")), options),
    { message: "waited 0.001s for it: no; look" },
  );
  const final = new Error("never");
  await assert.rejects(
    until(() => Promise.reject(final), { ...options, timeoutMs: 60_000, isFinal: () => true }),
    final,
  );
  let requests = 0;
  assert.equal(await until(async () => ++requests === 3 && requests, { ...options, timeoutMs: 60_000 }), 3);
});
