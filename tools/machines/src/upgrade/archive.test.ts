/** An archive's version, and what a machine has of another archive. */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { timerUnits } from "../host/timer.ts";
import { unitFlags, unitWithFlags } from "../host/units.ts";
import { links } from "../node/steps.ts";
import { runsFrom, versionOf } from "./archive.ts";
import { filesOf, missingOf } from "./machine-files.ts";

function anArchive(t: TestContext, files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), "cox-archive-"));
  t.after(() => rmSync(folder, { recursive: true }));
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), content);
  }
  return folder;
}

test("an archive's version is that of its file, which has to be whole", (t) => {
  const home = anArchive(t, { VERSION: "Coxswain 1.2.3, Kubernetes v1.23.4\n" });
  assert.deepEqual(versionOf(home), { home, coxswain: "1.2.3", kubernetes: "v1.23.4" });
  for (const text of ["", "Coxswain 1.2.3, Kubernetes v1.23.4", "Coxswain 1.2.3\n", "x\nCoxswain 1.2.3, Kubernetes v1.23.4\n"]) {
    writeFileSync(join(home, "VERSION"), text);
    assert.throws(() => versionOf(home), { message: `${home}/VERSION is damaged`, exitCode: 1 });
  }
  rmSync(join(home, "VERSION"));
  assert.throws(() => versionOf(home), { message: new RegExp(`^${home} is not an archive of Coxswain: ENOENT`), exitCode: 1 });
});

test("a unit that does not run is of no archive", async () => {
  assert.equal(await runsFrom("coxswain-none", "/opt/cox"), false);
});

const unit = (version: string): string =>
  `[Service]\nExecStart=/usr/bin/kubelet \\\n  --version=${version} \\\n  --v=0 \\\n  $KUBELET_ARGS\nRestart=always\n`;
const paths = { unit: "systemd/kubelet.service", dropIn: "systemd/kubelet.service.d/10-kubeadm.conf" };

test("another archive brings its links, units and drop-in; flags of the machine and its timers' words are kept", (t) => {
  const from = anArchive(t, { [paths.unit]: unit("1"), [paths.dropIn]: "one" });
  const to = anArchive(t, { [paths.unit]: unit("2"), [paths.dropIn]: "two" });
  const at = "/etc/systemd/system";
  const timer = (home: string) =>
    timerUnits({
      name: "coxswain-certs",
      description: "d",
      onCalendar: "daily",
      delay: "1h",
      words: [`${home}/bin/coxswain`, "certs", `--folder=${home}/bin/x`, `${home}/other`],
    })[0]!.content;
  const present = {
    links: {},
    files: [
      { path: `${at}/kubelet.service`, content: unitWithFlags(unit("1"), { v: "4" }) },
      { path: `${at}/kubelet.service.d/10-kubeadm.conf`, content: "one" },
      { path: `${at}/coxswain-certs.service`, content: timer(from) },
    ],
  };
  const wanted = filesOf(present, from, to);
  assert.deepEqual(
    wanted.links,
    Object.fromEntries(links.map((path) => [path, join(to, "bin", path.slice("/usr/bin/".length))])),
  );
  const [kubelet, dropIn, certs] = wanted.files;
  assert.deepEqual(unitFlags(kubelet?.content ?? ""), { version: "2", v: "4" });
  assert.deepEqual(dropIn, { path: present.files[1]?.path, content: "two" });
  assert.deepEqual(certs, { path: present.files[2]?.path, content: timer(to).replace(`${to}/other`, `${from}/other`) });
  assert.deepEqual(filesOf(wanted, to, from).files, present.files, "and back");
  assert.throws(() => filesOf(present, from, "/none"), { message: /^the archive in \/none is incomplete: ENOENT/ });
});

test("links and files that differ are named", (t) => {
  const folder = anArchive(t, { same: "a", other: "b" });
  const file = (name: string) => ({ path: join(folder, name), content: "a" });
  const link = join(folder, "link");
  assert.deepEqual(missingOf({ links: { [link]: "/x" }, files: [file("same"), file("other"), file("none")] }), [
    `link ${link} to /x`,
    `change ${folder}/other`,
    `write ${folder}/none`,
  ]);
});
