import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { localImages, wgetWithTimeouts } from "./busybox.ts";

const busybox = ["/bin/busybox", "/usr/bin/busybox"].find(existsSync);
const skip = busybox === undefined && "busybox is not installed";

test("an image names its busybox in a label and a file", { skip }, () => {
  const version = /BusyBox v\S+ \([^)]*\)/.exec(execFileSync(busybox as string, ["--help"], { encoding: "utf8" }))?.[0] ?? "";
  assert.notEqual(version, "");
  for (const { names, labels, layer } of localImages(busybox as string).slice(1)) {
    assert.equal(labels?.["org.opencontainers.image.version"], version);
    const file = layer.find(({ path }) => path === "etc/busybox-release");
    assert.equal(file?.type === "file" && file.content.toString(), `${names[0]}\n${version}\n`);
  }
});

test("wget takes a time limit, whatever this machine's busybox was built with", { skip }, async (t) => {
  const own = readFileSync(busybox as string);
  const wget = wgetWithTimeouts(own);
  const folder = mkdtempSync(join(tmpdir(), "cox-wget-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const program = join(folder, "busybox");
  writeFileSync(program, wget?.program ?? own, { mode: 0o755 });
  writeFileSync(join(folder, "wget"), wget?.script ?? '#!/bin/sh\nexec wget "$@"\n');
  const run = (...args: string[]) =>
    new Promise<{ code: unknown; stdout: string; stderr: string }>((resolve) =>
      execFile(program, ["sh", join(folder, "wget"), ...args], (err, stdout, stderr) =>
        resolve({ code: err?.code ?? err?.signal ?? 0, stdout, stderr }),
      ),
    );
  const server = createServer((request, response) => {
    if (request.url === "/silent") return;
    response.end(`${request.headers["user-agent"]}\n`);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close().closeAllConnections());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  for (const limit of [["-T", "30"], ["-T30"], ["-qT", "30"], ["-qT30"], ["--timeout=30"], []]) {
    const { code, stdout } = await run(...limit, "-q", "-O", "-", "-U", "two words", `${url}/`);
    assert.deepEqual({ code, stdout }, { code: 0, stdout: "two words\n" }, limit.join(" "));
  }
  const late = await run("-T", "1", "-q", "-O", "-", `${url}/silent`);
  assert.equal(late.code, 1);
  assert.match(late.stderr, /timed out/);
  assert.equal((await run("-T", "x", `${url}/`)).code, 1);
});

test("the root of an image has a folder for all to write in, and users", { skip }, () => {
  const [pause, image] = localImages(busybox as string); // cast: skipped where there is none
  assert.deepEqual(
    pause?.layer.map(({ path }) => path),
    ["bin", "bin/busybox", "bin/sleep"],
  );
  const modes = image?.layer.flatMap((entry) =>
    entry.type === "folder" && "mode" in entry ? [[entry.path, entry.mode?.toString(8)]] : [],
  );
  assert.deepEqual(
    modes?.filter(([, mode]) => mode !== "755"),
    [["tmp", "1777"]],
  );
  const passwd = image?.layer.find(({ path }) => path === "etc/passwd");
  assert.match(
    passwd?.type === "file" ? passwd.content.toString() : "",
    /^root:x:0:0:.*\ndaemon:x:1:1:.*\nnobody:x:65534:65534:/,
  );
  const sh = image?.layer.find(({ path }) => path === "bin/sh");
  assert.deepEqual(sh, { type: "symlink", path: "bin/sh", target: "/bin/busybox" });
});

test("only a wget that takes a limit and does not know it is replaced", () => {
  const names = "x\0wc\0wget\0which\0y";
  const letters = "cqSO:o:P:Y:U:T:+t:n::";
  const replaced = wgetWithTimeouts(Buffer.from(`${names}${letters}`));
  assert.equal(replaced?.program.toString(), `${names.replace("wget", "wgeT")}${letters}`);
  assert.match(replaced?.script ?? "", /^#!\/bin\/sh\n/);
  for (const other of [names, letters, `${names}${letters}Network read timeout`])
    assert.equal(wgetWithTimeouts(Buffer.from(other)), undefined, other);
});
