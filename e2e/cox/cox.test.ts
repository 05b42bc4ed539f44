import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { settings } from "../framework/kubectl.ts";
import { cox, elsewhere } from "./run-cox.ts";

test("a second up finds everything running and says so", async () => {
  const { code, output } = await cox(["up"]);
  assert.equal(code, 0, output);
  assert.match(output, /everything is running already/);
});

test("status names every process and the API's state", async () => {
  const { code, output } = await cox(["status"]);
  assert.equal(code, 0, output);
  for (const name of ["etcd", "containerd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet"])
    assert.match(output, new RegExp(`^${name} +running, pid \\d+ +yes `, "m"));
  assert.match(output, /the API server is ready/);
});

test("a taken port ends up with a line that names it and leaves nothing running", async (t) => {
  const server = createServer().listen(0, "127.0.0.1");
  t.after(() => server.close());
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as { port: number };
  const { code, output } = await cox(["up", "--name", "taken", "--apiserver-port", String(port)], elsewhere);
  assert.equal(code, 1, output);
  assert.match(
    output,
    new RegExp(`^cox: port ${port} is taken by another program; end it, or give another --apiserver-port$`, "m"),
  );
  assert.match((await cox(["status", "--name", "taken"])).output, /^cox: no cluster taken was started here/);
});

test("logs prints a daemon's log and names the choices when another is requested", async () => {
  assert.match((await cox(["logs", "kube-apiserver"])).output, /[IWE]\d{4} \d\d:\d\d:\d\d\.\d{6} /);
  const wrong = await cox(["logs", "nothing"]);
  assert.equal(wrong.code, 2);
  assert.match(wrong.output, /one of etcd, containerd, kube-apiserver/);
});

const flags = readFileSync(join(settings.root, "e2e/golden/flags.tsv"), "utf8")
  .trim()
  .split("\n")
  .map((line) => line.split("\t") as [string, string, string]);

/** pflag quotes strings and puts lists in brackets. */
function showsDefault(paragraph: string, value: string): boolean {
  const text = paragraph.replaceAll(/\s+/g, " ");
  return [value, `"${value}"`, `[${value}]`].some((form) => text.includes(`(default ${form})`));
}

for (const daemon of ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet"]) {
  test(`${daemon} --help shows every documented flag with its default`, async () => {
    const { code, output } = await cox(["run", daemon, "--help"]);
    assert.equal(code, 0, output);
    // One section per flag: from its line to that of the next flag.
    const paragraphs = output.split(/\n(?=\s+(?:-\w, )?--[a-z])/);
    const missing = flags
      .filter(([program]) => program === daemon)
      .filter(([, flag, shown]) => {
        const paragraph = paragraphs.find((text) => new RegExp(`^\\s*(?:-\\w, )?${flag}(?=[ \\n\\[=]|$)`).test(text.trimStart()));
        return (
          paragraph === undefined || !shown.split(";").some((form) => ["-", "?"].includes(form) || showsDefault(paragraph, form))
        );
      })
      .map(([, flag, shown]) => `${flag} ${shown}`);
    assert.deepEqual(missing, []);
  });

  test(`${daemon} refuses a flag it does not know`, async () => {
    const { code, output } = await cox(["run", daemon, "--no-such-flag"]);
    assert.equal(code, 1);
    assert.match(output, /unknown flag: --no-such-flag/);
  });

  test(`${daemon} --version names the release`, async () =>
    assert.equal((await cox(["run", daemon, "--version"])).output.trim(), "Kubernetes v1.23.0"));
}
