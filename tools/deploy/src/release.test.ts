import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { request as requestPlain } from "node:http";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { before, type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { newClient } from "@coxswain/apimachinery/client/client";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { type KeyPair, newCa, newCertificate } from "@coxswain/apimachinery/serving/certificates";
import { freePort, startEtcd } from "@coxswain/apimachinery/testing/etcd";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { fetchTool } from "@coxswain/dev-cluster/kubectl";
import type { TarEntry } from "@coxswain/images/tar";
import { linkedFiles } from "./document-links.ts";
import { ofRelease } from "./image.ts";
import { daemons, releaseFiles } from "./release.ts";
import { unpack } from "./testing/unpack.ts";

const root = join(import.meta.dirname, "..", "..", "..");
const home = mkdtempSync(join(tmpdir(), "cox-release-"));
process.on("exit", () => rmSync(home, { recursive: true, force: true }));
let entries: TarEntry[];

before(async () => {
  entries = await releaseFiles(root);
  unpack(entries, home);
});

const run = (program: string, ...args: string[]) => promisify(execFile)(join(home, "bin", program), args);

test("two builds of a release have the same bytes", async () => {
  assert.deepEqual(await releaseFiles(root), entries);
});

test("each daemon runs under its own name and under the common one", async () => {
  for (const name of daemons) {
    assert.equal((await run(name, "--version")).stdout, "Kubernetes v1.23.0\n");
    assert.equal((await run("coxswain", name, "--version")).stdout, "Kubernetes v1.23.0\n");
  }
  assert.match((await run("coxswain", "testing", "--help")).stdout, /^Runs a Kubernetes 1\.23 cluster with fake nodes/);
  assert.match((await run("coxswain", "version")).stdout, /^Coxswain \d+\.\d+\.\d+, Kubernetes v1\.23\.0\n$/);
  await assert.rejects(run("coxswain", "kube-proxy"), { code: 2, stderr: /^usage: coxswain <kube-apiserver \| / });
});

test("without a bundled Node a release uses the one of the PATH if it is new enough", async (t) => {
  const own = join(home, "libexec", "node");
  renameSync(own, `${own}.away`);
  t.after(() => renameSync(`${own}.away`, own));
  const folder = mkdtempSync(join(tmpdir(), "cox-path-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const withPath = (path: string) => promisify(execFile)(join(home, "bin", "kubelet"), ["--version"], { env: { PATH: path } });
  assert.equal((await withPath(`${dirname(process.execPath)}:/usr/bin:/bin`)).stdout, "Kubernetes v1.23.0\n");
  writeFileSync(join(folder, "node"), "#!/bin/sh\necho v18.0.0\n", { mode: 0o755 });
  await assert.rejects(withPath(`${folder}:/usr/bin:/bin`), { code: 127, stderr: /is v18\.0\.0, v26 is needed/ });
});

test("a daemon uses the compiled code that its previous start left in the service manager's cache folder", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "cox-cache-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const env = { ...process.env, CACHE_DIRECTORY: folder, NODE_DEBUG_NATIVE: "COMPILE_CACHE" };
  for (const name of daemons) {
    const start = () => promisify(execFile)(join(home, "bin", name), ["--help"], { env, maxBuffer: 16 << 20 });
    await start();
    assert.match((await start()).stderr, new RegExp(`V8 code cache for ESM \\S+/lib/${name}\\.js was accepted`));
  }
});

test("every link in a document of a release leads to a file of the release", () => {
  const paths = new Set(entries.map(({ path }) => path));
  const documents = entries.flatMap((entry) => (entry.type === "file" && entry.path.endsWith(".md") ? [entry] : []));
  assert.ok(documents.some(({ path }) => path === "docs/installing.md"));
  const dead = documents.flatMap(({ path, content }) =>
    linkedFiles(content.toString(), path).flatMap((target) => (paths.has(target) ? [] : `${path} -> ${target}`)),
  );
  assert.deepEqual(dead, []);
  // Only dead links were removed.
  assert.ok(linkedFiles(documents.map(({ content }) => content.toString()).join(""), "docs/x.md").length > 0);
});

/** Runs the launcher with only these programs and libraries available, simulating the dynamic loader's errors. */
function launcherOn(
  t: TestContext,
  programs: readonly string[],
): (...args: string[]) => Promise<{ code: number; stdout: string; stderr: string }> {
  const folder = mkdtempSync(join(tmpdir(), "cox-bare-"));
  t.after(() => rmSync(folder, { recursive: true }));
  for (const name of ["bin", "libexec", "programs"]) mkdirSync(join(folder, name));
  for (const name of ["readlink", ...programs]) symlinkSync("/usr/bin/readlink", join(folder, "programs", name));
  const script = readFileSync(join(home, "bin/coxswain"), "utf8")
    .replaceAll(":/usr/local/sbin:/usr/sbin:/sbin", "")
    .replaceAll(/\/(?:usr\/)?lib(?:64|\/\*)\/libatomic\.so\.1/g, join(folder, "libatomic.so.1"))
    .replaceAll(/\/run\/[\w/.-]+\.sock/g, join(folder, "none.sock"))
    .replaceAll("/opt/cni/bin /usr/lib/cni /usr/libexec/cni", join(folder, "cni"));
  writeFileSync(join(folder, "bin", "coxswain"), script, { mode: 0o755 });
  const node = "#!/bin/sh\necho 'error while loading shared libraries: libatomic.so.1' >&2\nexit 127\n";
  writeFileSync(join(folder, "libexec", "node"), node, { mode: 0o755 });
  return (...args) =>
    new Promise((resolve) =>
      execFile(join(folder, "bin", "coxswain"), args, { env: { PATH: join(folder, "programs") } }, (err, stdout, stderr) =>
        resolve({ code: Number(err?.code ?? 0), stdout, stderr }),
      ),
    );
}

test("the library that Node needs is named with its package, before Node starts", async (t) => {
  const { code, stderr } = await launcherOn(t, [])("kube-scheduler", "--version");
  assert.equal(code, 127);
  assert.equal(
    stderr,
    "coxswain: the library libatomic.so.1 is missing; on Debian: apt-get install --no-install-recommends libatomic1\n",
  );
});

test("preflight names every missing program of a node, with its package", async (t) => {
  const { code, stderr } = await launcherOn(t, ["mount", "umount", "nsenter", "prlimit"])("preflight");
  assert.equal(code, 1);
  const packages = [...stderr.matchAll(/^coxswain: .+ is missing; on Debian: .* (\S+)$/gm)].map(([, name]) => name);
  assert.deepEqual(packages, ["libatomic1", "iptables", "iproute2", "conntrack", "containernetworking-plugins", "containerd"]);
});

test("the licence of every shipped package is included", () => {
  const text = readFileSync(join(home, "licences/packages.txt"), "utf8");
  for (const name of ["express", "etcd3", "winston", "@grpc/grpc-js", "preact", "@fontsource-variable/inter"]) {
    assert.match(text, new RegExp(`^==== ${name} [0-9.]+: (?:MIT|Apache-2.0|OFL-1.1)$`, "m"));
  }
});

test("the bundled API server reads large YAML aside, asks etcd for its size, names the sources in its log, and has the page", async (t) => {
  const etcd = await startEtcd(t);
  const folder = join(home, "kubernetes");
  await run("coxswain", "certs", `--folder=${folder}`);
  const port = await freePort();
  const pki = (file: string): string => join(folder, "pki", file);
  const log: string[] = [];
  const server = spawn(join(home, "bin", "kube-apiserver"), [
    "--authorization-mode=RBAC",
    `--client-ca-file=${pki("ca.crt")}`,
    "--etcd-db-metric-poll-interval=100ms",
    `--etcd-prefix=/release-${process.pid}`,
    `--etcd-servers=${etcd.endpoint}`,
    `--secure-port=${port}`,
    "--service-account-issuer=https://kubernetes.default.svc",
    `--service-account-key-file=${pki("sa.pub")}`,
    `--service-account-signing-key-file=${pki("sa.key")}`,
    `--tls-cert-file=${pki("apiserver.crt")}`,
    `--tls-private-key-file=${pki("apiserver.key")}`,
    "--ui",
  ]);
  server.stderr.on("data", (chunk: Buffer) => log.push(chunk.toString()));
  t.after(() => server.kill("SIGKILL"));
  const ask = newAdmin(folder, port);
  await waitFor(async () => (await ask("GET", "/readyz").catch(() => undefined))?.code === 200, {
    timeoutMs: 180_000,
    what: `readyz; ${log.join("")}`,
  });

  const [, line] = await waitFor(() => /server\.ts:(\d+)\] "Serving securely"/.exec(log.join("")), {
    what: "the line in the log",
  });
  const source = readFileSync(join(root, "packages/apiserver/src/server.ts"), "utf8").split("\n");
  assert.match(source[Number(line) - 1] ?? "", /log\.info\("Serving securely"/);

  const keys = Array.from({ length: 5000 }, (_, i) => `  key-${i}: value\n`).join("");
  const yaml = `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: large\ndata:\n${keys}`;
  const made = await ask("POST", "/api/v1/namespaces/default/configmaps", yaml, "application/yaml");
  assert.equal(made.code, 201, made.text);

  const size = await waitFor(
    async () => /^etcd_db_total_size_in_bytes\{.*\} (\d+)/m.exec((await ask("GET", "/metrics")).text)?.[1],
    { timeoutMs: 60_000, what: "the size of the database" },
  );
  assert.ok(Number(size) > 0);

  for (const name of ["", "page.js", "worker.js", "style.css", "icon.svg"]) {
    assert.equal((await ask("GET", `/ui/${name}`)).code, 200, name);
  }
  await plugins(t, join(folder, "admin.conf"), `https://127.0.0.1:${port}`);
  await doctors(join(folder, "admin.conf"), folder);
});

/** kubectl finds the plugin in the archive's folder under its two names. */
async function plugins(t: TestContext, kubeconfig: string, server: string): Promise<void> {
  const programs = mkdtempSync(join(tmpdir(), "cox-programs-"));
  t.after(() => rmSync(programs, { recursive: true }));
  symlinkSync(await fetchTool({ root }, "kubectl"), join(programs, "kubectl"));
  const env = { ...process.env, PATH: `${programs}:${join(home, "bin")}:/usr/bin:/bin`, KUBECONFIG: kubeconfig };
  const kubectl = (...args: string[]) => promisify(execFile)("kubectl", args, { env });
  const listed = await kubectl("plugin", "list");
  assert.match(listed.stdout, /\/bin\/kubectl-explain_why\n.*\/bin\/kubectl-why\n/);
  assert.doesNotMatch(listed.stdout + listed.stderr, /warning/);
  for (const name of ["why", "explain-why"]) {
    const { stdout } = await kubectl(name, "namespace/default", "--server", server);
    assert.equal(stdout.split("\n")[0], "Healthy: namespace/default: nothing is wrong with it.", name);
  }
  await assert.rejects(kubectl("why", "namespace/none", "--server", server), {
    code: 2,
    stderr: /^kubectl why: namespaces "none" not found .*kubectl get namespace --all-namespaces\n/,
  });
}

/** `coxswain doctor` where no server answers at the kubeconfig's address: one critical finding, and the exit code 2. */
async function doctors(kubeconfig: string, folder: string): Promise<void> {
  const args = ["doctor", `--folder=${folder}`, `--kubeconfig=${kubeconfig}`, "-o", "json"];
  await assert.rejects(run("coxswain", ...args), ({ code, stdout }: { code: number; stdout: string }) => {
    const { findings, checks } = JSON.parse(stdout) as { findings: { check: string; severity: string }[]; checks: string[] };
    assert.deepEqual([code, findings.map(({ check, severity }) => `${severity} ${check}`)], [2, ["critical server"]]);
    assert.ok(checks.length >= 18);
    return true;
  });
  await assert.rejects(run("coxswain", "doctor", "-o", "xml"), { code: 2, stderr: /Allowed choices are text, json/ });
}

test("an image has the programs of the release on its PATH, with the plugin and the page", () => {
  const files = new Map(ofRelease(entries).map((entry) => [entry.path, entry]));
  for (const name of ["coxswain", "kubectl-why", "kubectl-explain_why"]) {
    assert.partialDeepStrictEqual(files.get(`usr/bin/${name}`), { type: "symlink", target: `/opt/coxswain/bin/${name}` });
    assert.ok(files.has(`opt/coxswain/bin/${name}`), name);
  }
  const page = ["index.html", "page.js", "worker.js", "style.css", "icon.svg"].map((name) => `opt/coxswain/lib/ui/${name}`);
  for (const path of page) assert.equal(files.get(path)?.type, "file", path);
  assert.ok([...files.keys()].some((path) => /^opt\/coxswain\/lib\/ui\/.*\.woff2$/.test(path)));
});

/** Client with the administrator's credentials written by `certs`. */
function newAdmin(folder: string, port: number) {
  const user = JSON.parse(readFileSync(join(folder, "admin.conf"), "utf8")).users[0].user as Record<string, string>;
  const pem = (name: string): Buffer => Buffer.from(user[name] ?? "", "base64");
  const credentials = {
    ca: readFileSync(join(folder, "pki", "ca.crt")),
    cert: pem("client-certificate-data"),
    key: pem("client-key-data"),
  };
  return (method: string, path: string, body?: string, type = "application/json") =>
    new Promise<{ code: number; text: string }>((resolve, reject) => {
      const headers = body === undefined ? {} : { "content-type": type };
      const sent = request({ host: "127.0.0.1", port, method, path, headers, ...credentials }, (answer) => {
        let text = "";
        answer.on("data", (chunk: Buffer) => {
          text += chunk.toString();
        });
        answer.on("end", () => resolve({ code: answer.statusCode ?? 0, text }));
      });
      sent.on("error", reject);
      sent.end(body);
    });
}

test("the folder envtest starts as controller-runtime's envtest starts it, and serves a client", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "cox-envtest-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const program = (name: string) => join(home, "envtest", name);
  const helpOf = async (name: string) => (await promisify(execFile)(program(name), ["--help"], { maxBuffer: 16 << 20 })).stdout;
  /** Starts a program, and waits for its page as envtest does: any certificate, until the answer is 200. */
  const start = async (name: string, args: readonly string[], url: string) => {
    const child = spawn(program(name), args, { stdio: ["ignore", "ignore", "pipe"] });
    let said = "";
    child.stderr.on("data", (chunk) => (said += chunk));
    t.after(() => void child.kill("SIGKILL"));
    await waitFor(async () => {
      assert.equal(child.exitCode, null, said);
      return (await statusOf(url)) === 200;
    });
    return async () => {
      child.kill("SIGTERM");
      const [code] = child.exitCode === null ? await once(child, "exit") : [child.exitCode];
      return code;
    };
  };
  const [etcdPort, peerPort, port] = await Promise.all([freePort(), freePort(), freePort()]);
  const etcdUrl = `http://127.0.0.1:${etcdPort}`;
  // envtest gives this flag when the help has it.
  assert.match(await helpOf("etcd"), /^\s*--unsafe-no-fsync\b/m);
  const etcdFlags = [
    `--advertise-client-urls=${etcdUrl}`,
    `--data-dir=${folder}`,
    `--listen-client-urls=${etcdUrl}`,
    `--listen-peer-urls=http://127.0.0.1:${peerPort}`,
    "--unsafe-no-fsync=true",
  ];
  const stopEtcd = await start("etcd", etcdFlags, `${etcdUrl}/health`);
  const [ca, clientCa, saCa] = await Promise.all(["serving", "client", "sa"].map((commonName) => newCa({ commonName })));
  const serving = await newCertificate({ commonName: "localhost", ips: ["127.0.0.1"], usages: ["server"], ca: ca as KeyPair });
  for (const [file, pem] of [
    ["apiserver.crt", serving.certPem],
    ["apiserver.key", serving.keyPem],
    // A certificate in place of a public key.
    ["sa-signer.crt", saCa?.certPem],
    ["sa-signer.key", saCa?.keyPem],
    ["client-cert-auth-ca.crt", clientCa?.certPem],
  ] as const) {
    writeFileSync(join(folder, file), pem as string);
  }
  const insecure = /^\s*--insecure-port\b/m.test(await helpOf("kube-apiserver")) ? ["--insecure-port=0"] : [];
  const url = `https://127.0.0.1:${port}`;
  const apiFlags = [
    "--allow-privileged=true",
    "--authorization-mode=RBAC",
    "--bind-address=127.0.0.1",
    `--cert-dir=${folder}`,
    `--client-ca-file=${join(folder, "client-cert-auth-ca.crt")}`,
    "--disable-admission-plugins=ServiceAccount",
    `--etcd-servers=${etcdUrl}`,
    ...insecure,
    `--secure-port=${port}`,
    `--service-account-issuer=${url}/`,
    `--service-account-key-file=${join(folder, "sa-signer.crt")}`,
    `--service-account-signing-key-file=${join(folder, "sa-signer.key")}`,
    "--service-cluster-ip-range=10.0.0.0/24",
  ];
  const stopApi = await start("kube-apiserver", apiFlags, `${url}/healthz`);
  const subject = { commonName: "admin", organizations: ["system:masters"] };
  const user = await newCertificate({ ...subject, usages: ["client"], ca: clientCa as KeyPair });
  const client = newClient({ host: url, ca: (ca as KeyPair).certPem, cert: user.certPem, key: user.keyPem });
  t.after(() => client.close());
  const pod = { metadata: { name: "web", namespace: "default" }, spec: { containers: [{ name: "c", image: "i" }] } };
  const made = await client.create<Pod>(pods, pod);
  const watch = client.watch<Pod>(
    pods,
    {},
    { resourceVersion: made.metadata.resourceVersion, signal: AbortSignal.timeout(60_000) },
  );
  await client.delete(pods, { namespace: "default", name: "web" }, { gracePeriodSeconds: 0 });
  for await (const { type, object } of watch) {
    assert.equal(object.metadata.name, "web");
    if (type === "DELETED") break;
  }
  client.close();
  assert.deepEqual([await stopApi(), await stopEtcd()], [0, 0]);
});

test("the example in Python passes with the folder envtest, whose programs end with exit code 0", async () => {
  const env = { PATH: process.env["PATH"], KUBEBUILDER_ASSETS: join(home, "envtest") };
  const cwd = join(root, "examples/python");
  const { stderr } = await promisify(execFile)("/usr/bin/python3", ["-B", "-m", "unittest"], { cwd, env, timeout: 300_000 });
  assert.match(stderr, /^Ran 2 tests in .*\n\nOK$/m);
});

test("envtest's kubectl runs the one on the PATH, and reports when there is none", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "cox-kubectl-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const kubectl = (path: string) => {
    const env = { PATH: `${join(home, "envtest")}:${path}` };
    return promisify(execFile)("/bin/sh", [join(home, "envtest/kubectl"), "get", "a b"], { env });
  };
  writeFileSync(join(folder, "kubectl"), '#!/bin/sh\nprintf "%s," "$@"\n', { mode: 0o755 });
  assert.equal((await kubectl(folder)).stdout, "get,a b,");
  await assert.rejects(kubectl(join(folder, "none")), {
    code: 127,
    stderr: /^kubectl: none is installed beside .*envtest on the PATH: install one/,
  });
});

function statusOf(url: string): Promise<number | undefined> {
  return new Promise((resolve) => {
    const send = url.startsWith("https:") ? request : requestPlain;
    send(url, { rejectUnauthorized: false }, (response) => {
      response.resume();
      resolve(response.statusCode);
    })
      .once("error", () => resolve(undefined))
      .end();
  });
}
