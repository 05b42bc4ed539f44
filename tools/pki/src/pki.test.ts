import assert from "node:assert/strict";
import { createPrivateKey, generateKeyPairSync, X509Certificate } from "node:crypto";
import { chmodSync, globSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { makeFolderSync } from "@coxswain/apimachinery/process/files/make-folder";
import { alternativeNamesOf, type KeyPair, newCa, newCertificate } from "@coxswain/apimachinery/serving/certificates";
import { newCertsCommand, runCerts } from "./command.ts";
import { PkiError } from "./files.ts";
import { expiredCertificates, takeInventory, validityOf } from "./inventory.ts";
import { makeMissing } from "./make.ts";
import type { PkiPlan } from "./plan.ts";
import { renew, renewExpiring } from "./renew.ts";

const dayMs = 86_400_000;

function aPlan(t: { after(fn: () => void): void }, more: Partial<PkiPlan> = {}): PkiPlan {
  const folder = mkdtempSync(join(tmpdir(), "cox-pki-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return {
    folder,
    nodeName: "one",
    apiserverNames: ["10.96.0.1"],
    etcdNames: [],
    kubeletNames: [],
    kubeletClientGroups: ["system:masters"],
    server: () => "https://127.0.0.1:6443",
    ...more,
  };
}

const read = (plan: PkiPlan, file: string): string => readFileSync(join(plan.folder, file), "utf8");
const put = (plan: PkiPlan, file: string, text: string): void => {
  makeFolderSync(join(plan.folder, "pki", "etcd"));
  writeFileSync(join(plan.folder, file), text);
};
const certificate = (plan: PkiPlan, file: string): X509Certificate => new X509Certificate(read(plan, file));
const caOf = (plan: PkiPlan, file = "pki/ca"): KeyPair => ({
  certPem: read(plan, `${file}.crt`),
  keyPem: read(plan, `${file}.key`),
});
/** Contents and modification times of all files, to assert that nothing was written. */
const everything = (plan: PkiPlan) =>
  globSync("**", { cwd: plan.folder })
    .filter((path) => statSync(join(plan.folder, path)).isFile())
    .map((path) => [path, read(plan, path), statSync(join(plan.folder, path)).mtimeMs]);
const embedded = (plan: PkiPlan, name: string): X509Certificate => {
  const { users } = JSON.parse(read(plan, `${name}.conf`)) as { users: { user: Record<string, string> }[] };
  return new X509Certificate(Buffer.from(users[0]?.user["client-certificate-data"] ?? "", "base64"));
};

test("a second run writes nothing, and keeps the names requested in an earlier one", async (t) => {
  const plan = aPlan(t, { apiserverNames: ["10.96.0.1", "lb.test"] });
  await makeMissing(plan);
  const before = everything(plan);
  assert.deepEqual(await makeMissing({ ...plan, apiserverNames: [] }), []);
  assert.deepEqual(everything(plan), before);
});

test("names that are requested later come to those that are there; key and authority stay", async (t) => {
  const plan = aPlan(t, { apiserverNames: ["lb.test"] });
  await makeMissing(plan);
  const key = read(plan, "pki/apiserver.key");
  const made = await makeMissing({ ...plan, nodeName: "two", apiserverNames: ["other.test", "10.0.0.9"] });
  assert.deepEqual(
    made.map(({ path }) => path.slice(plan.folder.length)),
    ["/pki/apiserver.crt", "/pki/etcd/server.crt", "/pki/etcd/peer.crt", "/pki/kubelet.crt"],
  );
  const names = alternativeNamesOf(read(plan, "pki/apiserver.crt"));
  for (const name of ["lb.test", "other.test", "one", "two", "kubernetes.default.svc"])
    assert.ok(names.dnsNames.includes(name), name);
  assert.ok(names.ips.includes("10.0.0.9"));
  assert.equal(read(plan, "pki/apiserver.key"), key);
  assert.ok(certificate(plan, "pki/apiserver.crt").checkPrivateKey(createPrivateKey(key)));
  assert.deepEqual(await makeMissing({ ...plan, nodeName: "two", apiserverNames: ["other.test", "10.0.0.9"] }), []);
});

test("an authority without its key is never replaced: certificates that it would have to sign are named, and nothing is written", async (t) => {
  const plan = aPlan(t);
  const external = await newCa({ commonName: "of another team" });
  put(plan, "pki/ca.crt", external.certPem);
  const before = everything(plan);
  await assert.rejects(
    makeMissing(plan),
    (err) =>
      err instanceof PkiError &&
      /pki\/ca\.crt is there without its key \(an external authority\), so these cannot be made: \S+pki\/apiserver\.crt, .*services\.conf; put ca\.key beside it/.test(
        err.message,
      ),
  );
  assert.deepEqual(everything(plan), before);
});

test("an external authority without its key is accepted when nothing is missing", async (t) => {
  const plan = aPlan(t);
  await makeMissing(plan);
  rmSync(join(plan.folder, "pki/ca.key"));
  assert.deepEqual(await makeMissing(plan), []);
});

test("a missing CA is not created again while certificates signed by it exist", async (t) => {
  const plan = aPlan(t);
  await makeMissing(plan);
  rmSync(join(plan.folder, "pki/etcd/ca.crt"));
  const before = everything(plan);
  await assert.rejects(makeMissing(plan), /pki\/etcd\/ca\.crt is missing, the authority of .*etcd\/server\.crt.*: put it back/);
  assert.deepEqual(everything(plan), before);
});

test("a worker node of kubeadm with a CA and the kubelet's kubeconfig keeps its files unchanged", async (t) => {
  const plan = aPlan(t);
  put(plan, "pki/ca.crt", (await newCa({ commonName: "kubernetes" })).certPem);
  put(
    plan,
    "kubelet.conf",
    "apiVersion: v1\nkind: Config\nusers:\n- name: n\n  user: {client-certificate: /var/lib/kubelet/pki/x.pem}\n",
  );
  const before = everything(plan);
  await assert.rejects(makeMissing(plan), PkiError);
  await assert.rejects(renew(plan, { names: ["kubelet.conf"] }), /cannot be renewed/);
  assert.deepEqual(everything(plan), before);
});

test("edited kubeconfigs are not changed, whatever the plan", async (t) => {
  const plan = aPlan(t);
  await makeMissing(plan);
  put(plan, "admin.conf", read(plan, "admin.conf").replace("127.0.0.1:6443", "lb.test:443"));
  const before = everything(plan);
  assert.deepEqual(await makeMissing({ ...plan, server: () => "https://127.0.0.1:7443" }), []);
  assert.deepEqual(everything(plan), before);
});

test("in a cluster's own folder kubeconfigs follow the port and the node's name, and keep what the user added", async (t) => {
  const own = { isEarlierServer: (url: string) => url.startsWith("https://127.0.0.1:") };
  const plan = aPlan(t, own);
  await makeMissing(plan);
  put(
    plan,
    "admin.conf",
    read(plan, "admin.conf").replace('"user": "kubernetes-admin"', '"user": "kubernetes-admin", "namespace": "web"'),
  );
  const before = embedded(plan, "admin").fingerprint256;
  await makeMissing({ ...plan, nodeName: "two", server: () => "https://127.0.0.1:7443" });
  assert.match(read(plan, "admin.conf"), /"namespace": "web"/);
  assert.match(read(plan, "admin.conf"), /"server": "https:\/\/127\.0\.0\.1:7443"/);
  assert.equal(embedded(plan, "admin").fingerprint256, before);
  assert.match(embedded(plan, "kubelet").subject, /CN=system:node:two$/);
  assert.match(read(plan, "kubelet.conf"), /"server": "https:\/\/127\.0\.0\.1:7443"/);
});

test("a certificate of other origin is kept; a missing name is an error only when it is requested", async (t) => {
  const plan = aPlan(t);
  await makeMissing(plan);
  const foreign = await newCertificate({
    commonName: "kube-apiserver",
    dnsNames: ["kubernetes", "cp"],
    usages: ["server"],
    ca: caOf(plan),
  });
  put(plan, "pki/apiserver.crt", foreign.certPem);
  put(plan, "pki/apiserver.key", foreign.keyPem);
  const before = everything(plan);
  assert.deepEqual(await makeMissing({ ...plan, apiserverNames: ["cp"] }), []);
  await assert.rejects(
    makeMissing({ ...plan, apiserverNames: ["lb.test"] }),
    /apiserver\.crt lacks lb\.test and was not made by this program/,
  );
  assert.deepEqual(everything(plan), before);
});

test("a key without a certificate gets one, as after an interrupted run; a certificate without its key is an error", async (t) => {
  const plan = aPlan(t);
  await makeMissing(plan);
  const key = read(plan, "pki/apiserver.key");
  rmSync(join(plan.folder, "pki/apiserver.crt"));
  assert.deepEqual(await makeMissing(plan), [{ path: join(plan.folder, "pki/apiserver.crt") }]);
  assert.ok(certificate(plan, "pki/apiserver.crt").checkPrivateKey(createPrivateKey(key)));
  rmSync(join(plan.folder, "pki/etcd/peer.key"));
  await assert.rejects(makeMissing(plan), /etcd\/peer\.key is missing, the key of \S+etcd\/peer\.crt: put it back, or remove/);
});

test("the public key of tokens is made from the private one; the other way round is an error", async (t) => {
  const plan = aPlan(t);
  await makeMissing(plan);
  const pub = read(plan, "pki/sa.pub");
  rmSync(join(plan.folder, "pki/sa.pub"));
  await makeMissing(plan);
  assert.equal(read(plan, "pki/sa.pub"), pub);
  rmSync(join(plan.folder, "pki/sa.key"));
  await assert.rejects(makeMissing(plan), /sa\.key is missing/);
});

test("a dry run prints what a run would do, and writes nothing", async (t) => {
  const plan = aPlan(t);
  const said = await makeMissing(plan, { dryRun: true });
  assert.deepEqual(everything(plan), []);
  assert.deepEqual(await makeMissing(plan), said);
});

test("a certificate expires soon in its last thirty days, or its last sixth if that is shorter", async (t) => {
  const now = Date.UTC(2030, 0, 1);
  const ca = await newCa({ commonName: "ca", now });
  for (const [validDays, remainingDays, want] of [
    [365, 31, "valid"],
    [365, 29, "ends soon"],
    [6, 1.1, "valid"],
    [6, 0.9, "ends soon"],
    [6, -0.1, "expired"],
    [6, 6.1, "not valid yet"],
  ] as const) {
    const { certPem } = await newCertificate({ commonName: "x", usages: ["client"], ca, validDays, now });
    const at = now + (validDays - remainingDays) * dayMs;
    assert.equal(validityOf(new X509Certificate(certPem), at), want, `${validDays} days, ${remainingDays} left`);
  }
  t.diagnostic("by the certificate's own dates");
});

test("a certificate that expires soon is renewed with the same key, names, subject, usages, mode and authority", async (t) => {
  const plan = aPlan(t, { apiserverNames: ["lb.test"] });
  const start = Date.UTC(2030, 0, 1);
  await makeMissing(plan, { now: start });
  assert.deepEqual((await renewExpiring(plan, start + 300 * dayMs)).paths, []);
  chmodSync(join(plan.folder, "pki/apiserver.crt"), 0o640);
  const before = certificate(plan, "pki/apiserver.crt");
  const kept = ["pki/apiserver.key", "pki/ca.crt", "pki/ca.key", "pki/sa.key"].map((file) => read(plan, file));
  const later = start + 340 * dayMs;
  const { paths } = await renewExpiring(plan, later);
  assert.equal(paths.length, 13);
  const after = certificate(plan, "pki/apiserver.crt");
  assert.equal(after.validToDate.getTime(), later + 365 * dayMs);
  const said = (of: X509Certificate) => [
    of.subject,
    of.issuer,
    of.subjectAltName,
    of.keyUsage,
    of.publicKey.export({ format: "jwk" }),
  ];
  assert.deepEqual(said(after), said(before));
  assert.notEqual(after.serialNumber, before.serialNumber);
  assert.equal(statSync(join(plan.folder, "pki/apiserver.crt")).mode & 0o777, 0o640);
  assert.deepEqual(
    ["pki/apiserver.key", "pki/ca.crt", "pki/ca.key", "pki/sa.key"].map((file) => read(plan, file)),
    kept,
  );
  for (const { certificate: one, keyPem } of takeInventory(plan).found.filter(({ isAuthority }) => !isAuthority))
    assert.ok(one.checkPrivateKey(createPrivateKey(keyPem ?? "")), one.subject);
  assert.deepEqual((await renewExpiring(plan, later)).paths, []);
});

test("renewing one certificate by name changes nothing else", async (t) => {
  const plan = aPlan(t);
  await makeMissing(plan);
  const before = new Map(everything(plan).map(([path, text]) => [path, text]));
  const { paths } = await renew(plan, { names: ["etcd-server", "scheduler"], now: Date.now() + 5000 });
  assert.deepEqual(paths, [join(plan.folder, "pki/etcd/server.crt"), join(plan.folder, "scheduler.conf")]);
  const changed = everything(plan).filter(([path, text]) => before.get(path as string) !== text);
  assert.deepEqual(changed.map(([path]) => path).sort(), ["pki/etcd/server.crt", "scheduler.conf"]);
  await assert.rejects(renew(plan, { names: ["nonsense"] }), /there is no certificate nonsense in/);
  await assert.rejects(renew(plan, { names: ["ca"] }), /it is an authority/);
});

test("renewing an edited kubeconfig keeps all additions", async (t) => {
  const plan = aPlan(t);
  await makeMissing(plan);
  const text = `# mine\n${read(plan, "admin.conf").replace("127.0.0.1:6443", "lb.test:443")}`;
  put(plan, "admin.conf", text);
  await renew(plan, { names: ["admin.conf"], now: Date.now() + 5000 });
  const rest = (all: string) => all.replace(/"client-certificate-data": "[^"]+"/, "");
  assert.equal(rest(read(plan, "admin.conf")), rest(text));
  assert.notEqual(read(plan, "admin.conf"), text);
});

test("a certificate of another authority is not renewed: by name it is an error, else a message", async (t) => {
  const plan = aPlan(t);
  await makeMissing(plan);
  const foreign = await newCertificate({ commonName: "x", usages: ["server"], ca: await newCa({ commonName: "elsewhere" }) });
  put(plan, "pki/apiserver.crt", foreign.certPem);
  put(plan, "pki/apiserver.key", foreign.keyPem);
  await assert.rejects(renew(plan, { names: ["apiserver"] }), /signed by CN=elsewhere, which is no authority of this folder/);
  const { paths, skipped } = await renew(plan);
  assert.equal(paths.length, 12);
  assert.match(skipped.join("\n"), /^\S+apiserver\.crt \(CN=x\) cannot be renewed here/);
  assert.equal(read(plan, "pki/apiserver.crt"), foreign.certPem);
  await assert.rejects(renewExpiring(plan, Date.now() + 400 * dayMs), /apiserver\.crt .*cannot be renewed here/);
});

test("a certificate never outlives its authority", async (t) => {
  const plan = aPlan(t);
  const ca = await newCa({ commonName: "kubernetes", validDays: 100 });
  put(plan, "pki/ca.crt", ca.certPem);
  put(plan, "pki/ca.key", ca.keyPem);
  await makeMissing(plan);
  const end = certificate(plan, "pki/ca.crt").validTo;
  assert.equal(certificate(plan, "pki/apiserver.crt").validTo, end);
  await renew(plan, { names: ["apiserver"] });
  assert.equal(certificate(plan, "pki/apiserver.crt").validTo, end);
  for (const later of [certificate(plan, "pki/ca.crt").validToDate.getTime(), Date.now() + 101 * dayMs])
    await assert.rejects(renew(plan, { names: ["apiserver"], now: later }), /its authority, \S+pki\/ca\.crt, expired on /);
});

test("a renewed kubeconfig is still its owner's alone; a renewed certificate may be read by all", async (t) => {
  const plan = aPlan(t);
  await makeMissing(plan);
  const mode = (file: string): number => statSync(join(plan.folder, file)).mode & 0o777;
  await renew(plan, { names: ["admin.conf", "apiserver"], now: Date.now() + 5000 });
  assert.deepEqual(["admin.conf", "pki/apiserver.crt", "pki/apiserver.key"].map(mode), [0o600, 0o644, 0o600]);
});

test("each user of a kubeconfig is listed by name where there are several; the folder's own authority in it is not listed", async (t) => {
  const plan = aPlan(t);
  await makeMissing(plan);
  const details = (): (string | undefined)[] =>
    takeInventory(plan)
      .found.filter(({ name }) => name === "admin.conf")
      .map(({ detail }) => detail);
  assert.deepEqual(details(), [undefined]);
  const config = JSON.parse(read(plan, "admin.conf"));
  config.users.push({ ...config.users[0], name: "second" });
  const ca = config.clusters[0].cluster;
  ca["certificate-authority-data"] = Buffer.from(read(plan, "pki/ca.crt").trimEnd()).toString("base64");
  put(plan, "admin.conf", JSON.stringify(config));
  assert.deepEqual(details(), [`user ${config.users[0].name}`, "user second"]);
  ca["certificate-authority-data"] = Buffer.from((await newCa({ commonName: "elsewhere" })).certPem).toString("base64");
  put(plan, "admin.conf", JSON.stringify(config));
  assert.equal(details()[2], "its certificate authority");
});

test("a link to a certificate stays a link, and a chain stays behind its certificate", async (t) => {
  const plan = aPlan(t);
  await makeMissing(plan);
  const file = join(plan.folder, "pki/apiserver.crt");
  put(plan, "store.pem", read(plan, "pki/apiserver.crt") + read(plan, "pki/ca.crt"));
  rmSync(file);
  symlinkSync("../store.pem", file);
  await renew(plan, { names: ["apiserver"], now: Date.now() + 5000 });
  const text = read(plan, "store.pem");
  assert.equal(text, read(plan, "pki/apiserver.crt"));
  assert.ok(text.endsWith(`-----END CERTIFICATE-----\n${read(plan, "pki/ca.crt")}`));
});

test("an expired certificate is reported with its file, subject and expiry", async (t) => {
  const plan = aPlan(t);
  const start = Date.UTC(2020, 0, 1);
  await makeMissing(plan, { now: start });
  assert.deepEqual(expiredCertificates(plan, start), []);
  const expired = expiredCertificates(plan, start + 366 * dayMs);
  assert.equal(expired.length, 13);
  assert.ok(expired.includes(`${join(plan.folder, "pki/apiserver.crt")} (CN=kube-apiserver) expired on 2020-12-31T00:00:00Z`));
  assert.ok(expired.some((line) => line.startsWith(join(plan.folder, "scheduler.conf"))));
});

/** Runs the command line. */
async function run(plan: PkiPlan, now: number, ...args: string[]): Promise<{ code: number; lines: string[] }> {
  const lines: string[] = [];
  const command = newCertsCommand({ program: "certs", plan: () => plan, print: (line) => lines.push(line), now: () => now });
  const before = process.exitCode;
  process.exitCode = 0;
  try {
    return { code: await runCerts(command, args), lines };
  } finally {
    process.exitCode = before;
  }
}

test("check lists all certificates, also those of kubeconfigs, and exits with 1 when one has expired", async (t) => {
  const plan = aPlan(t);
  const start = Date.UTC(2030, 0, 1);
  await run(plan, start);
  const well = await run(plan, start, "check");
  assert.equal(well.code, 0);
  assert.match(well.lines.join("\n"), /^apiserver +2031-01-01T00:00:00Z +365d +ca +CN=kube-apiserver$/m);
  assert.match(well.lines.join("\n"), /^scheduler\.conf +2031-01-01T00:00:00Z +365d +ca +CN=system:kube-scheduler$/m);
  assert.equal(well.lines.length, 17);
  const remaining = async (now: number) => /^apiserver +\S+ +(\S+)/m.exec((await run(plan, now, "check")).lines.join("\n"))?.[1];
  const end = Date.UTC(2031, 0, 1);
  assert.deepEqual([await remaining(end - 2 * dayMs), await remaining(end - 2 * dayMs + 1)], ["2d", "47h"]);
  const ill = await run(plan, start + 366 * dayMs, "check");
  assert.equal(ill.code, 1);
  assert.match(ill.lines.join("\n"), /^etcd\/server +2031-01-01T00:00:00Z +expired /m);
  const forPrograms = await run(plan, start + 340 * dayMs, "check", "--output=json");
  assert.equal(forPrograms.code, 0);
  const { certificates, unreadable: none } = JSON.parse(forPrograms.lines.join("\n"));
  assert.deepEqual(none, []);
  assert.deepEqual(
    certificates.find(({ name }: { name: string }) => name === "etcd/server"),
    {
      ...{ name: "etcd/server", path: join(plan.folder, "pki/etcd/server.crt"), state: "ends soon", isAuthority: false },
      ...{ notBefore: "2029-12-31T23:55:00Z", notAfter: "2031-01-01T00:00:00Z", secondsLeft: 25 * 86_400, authority: "etcd/ca" },
      subject: "CN=one",
    },
  );
  put(plan, "pki/apiserver.crt", "nonsense");
  const unreadable = await run(plan, start, "check");
  assert.equal(unreadable.code, 1);
  assert.match(unreadable.lines.join("\n"), /apiserver\.crt cannot be read: it is no certificate in PEM form/);
});

test("the command prints what it created, changed and would do, and when nothing is missing", async (t) => {
  const plan = aPlan(t);
  const now = Date.now();
  assert.match((await run(plan, now, "--dry-run")).lines[0] ?? "", /^would make \S+pki\/ca\.key$/);
  assert.match((await run(plan, now)).lines[0] ?? "", /^made \S+pki\/ca\.key$/);
  assert.deepEqual((await run(plan, now)).lines, [`nothing is missing in ${plan.folder}`]);
  const renewed = await run(plan, now, "renew", "scheduler.conf", "--dry-run");
  assert.match(renewed.lines.join("\n"), /^would renew \S+scheduler\.conf$/);
  assert.match((await run(plan, now + 340 * dayMs)).lines.join("\n"), /apiserver\.crt ends on \S+; certs renew apiserver$/m);
  assert.deepEqual((await run(plan, now, "renew", "--expiring")).lines, ["nothing to renew"]);
  assert.equal((await run({ ...plan, apiserverNames: ["x.test"] }, now)).code, 0);
  rmSync(join(plan.folder, "pki/ca.key"));
  await assert.rejects(makeMissing({ ...plan, apiserverNames: ["y.test"] }), /lacks y\.test, and the key of its authority/);
  assert.equal((await run({ ...plan, apiserverNames: ["y.test"] }, now)).code, 1);
});

/** What `action` says, with the plan's folder as F. */
async function problemOf(plan: PkiPlan, action: Promise<unknown>): Promise<string> {
  const err = await action.then(
    () => assert.fail("it succeeded"),
    (reason: unknown) => reason,
  );
  assert.ok(err instanceof PkiError, String(err));
  return err.message.replaceAll(plan.folder, "F");
}

const remove = (plan: PkiPlan, file: string): void => rmSync(join(plan.folder, file));
const otherKey = async (): Promise<string> => (await newCa({ commonName: "other" })).keyPem;
const cannotBeMade = (why: string): string =>
  `F/pki/ca.crt ${why}, so these cannot be made: F/pki/apiserver.crt; put ca.key beside it, or have the owner of the authority make them`;

for (const [name, change, want, more] of [
  [
    "an authority that is no certificate",
    (plan) => {
      put(plan, "pki/ca.crt", "nonsense");
      remove(plan, "pki/apiserver.crt");
    },
    [cannotBeMade("is no certificate in PEM form")],
  ],
  [
    "an authority with another key",
    async (plan) => {
      put(plan, "pki/ca.key", await otherKey());
      remove(plan, "pki/apiserver.crt");
    },
    [cannotBeMade("does not belong to the key beside it")],
  ],
  [
    "an authority with a damaged key",
    (plan) => {
      put(plan, "pki/ca.key", "nonsense");
      remove(plan, "pki/apiserver.crt");
    },
    [cannotBeMade("does not belong to the key beside it")],
  ],
  [
    "all files that are wrong",
    (plan) => {
      put(plan, "pki/apiserver.crt", "nonsense");
      remove(plan, "pki/etcd/peer.key");
      remove(plan, "pki/sa.key");
    },
    [
      "F/pki/apiserver.crt is no certificate in PEM form: put one there, or remove it to have one made",
      "F/pki/etcd/peer.key is missing, the key of F/pki/etcd/peer.crt: put it back, or remove the certificate to have both made anew",
      "F/pki/sa.key is missing, the key of F/pki/sa.pub: put it back, or remove that to have both made anew (tokens that were signed with the old key end then)",
    ],
  ],
  [
    "an edited kubeconfig of the kubelet's earlier name",
    (plan) => put(plan, "kubelet.conf", `${read(plan, "kubelet.conf")}\n`),
    ["F/kubelet.conf is for node one and has been edited: remove it to have one for two made"],
    { nodeName: "two", isEarlierServer: () => true },
  ],
] as readonly [string, (plan: PkiPlan) => void | Promise<void>, readonly string[], Partial<PkiPlan>?][])
  test(`${name}: the problem is told, and nothing is written`, async (t) => {
    const plan = aPlan(t);
    await makeMissing(plan);
    await change(plan);
    const before = everything(plan);
    assert.equal(await problemOf(plan, makeMissing({ ...plan, ...more })), want.join("\n"));
    assert.deepEqual(everything(plan), before);
  });

test("in a cluster's own folder a file that is no kubeconfig is told with the remedy", async (t) => {
  const plan = aPlan(t, { isEarlierServer: () => true });
  await makeMissing(plan);
  put(plan, "admin.conf", "a: [");
  assert.match(
    await problemOf(plan, makeMissing(plan)),
    /^F\/admin\.conf: .+; put a kubeconfig there, or remove it to have one made$/,
  );
  assert.deepEqual(await makeMissing({ ...plan, isEarlierServer: undefined } as unknown as PkiPlan), [], "others are left alone");
});

test("only certificates of this program's making get more names", async (t) => {
  const names = {
    dnsNames: ["kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"],
  };
  const plan = aPlan(t, { apiserverNames: [] });
  await makeMissing(plan);
  const own = alternativeNamesOf(read(plan, "pki/apiserver.crt"));
  const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export({ type: "pkcs8", format: "pem" }) as string; // cast: PEM is text
  const common = {
    commonName: "kube-apiserver",
    usages: ["server"],
    ca: caOf(plan),
    dnsNames: own.dnsNames,
    ips: own.ips,
  } as const;
  for (const [what, options] of [
    ["an RSA key", { keyPem: rsa }],
    ["another name", { commonName: "other" }],
    ["an organization", { organizations: ["o"] }],
    ["fewer addresses", { ips: [] }],
    ["fewer names", names],
    ["another authority", { ca: await newCa({ commonName: "kubernetes" }) }],
  ] as const) {
    const pair = await newCertificate({ ...common, ...options });
    put(plan, "pki/apiserver.crt", pair.certPem);
    put(plan, "pki/apiserver.key", pair.keyPem);
    assert.equal(
      await problemOf(plan, makeMissing({ ...plan, apiserverNames: ["lb.test", "10.9.9.9"] })),
      "F/pki/apiserver.crt lacks lb.test, 10.9.9.9 and was not made by this program: it stays as it is; remove it to have one made",
      what,
    );
  }
  const pair = await newCertificate(common);
  put(plan, "pki/apiserver.crt", pair.certPem);
  put(plan, "pki/apiserver.key", pair.keyPem);
  assert.deepEqual(await makeMissing({ ...plan, apiserverNames: ["lb.test", "10.9.9.9"] }), [
    { path: join(plan.folder, "pki/apiserver.crt"), why: "added lb.test, 10.9.9.9" },
  ]);
});

for (const [name, change, want] of [
  ["has no key", (plan) => remove(plan, "pki/apiserver.key"), "its key is missing"],
  [
    "has another key",
    async (plan) => put(plan, "pki/apiserver.key", await otherKey()),
    "it does not belong to the key beside it",
  ],
  ["has no authority", (plan) => remove(plan, "pki/ca.key"), "F/pki/ca.key, the key of its authority, is missing"],
] as readonly [string, (plan: PkiPlan) => void | Promise<void>, string][])
  test(`a certificate that ${name} is not renewed: an error by name and when it has expired, else a message`, async (t) => {
    const plan = aPlan(t);
    const now = Date.UTC(2030, 0, 1);
    await makeMissing(plan, { now });
    await change(plan);
    const said = `F/pki/apiserver.crt (CN=kube-apiserver) cannot be renewed here: ${want}`;
    assert.equal(await problemOf(plan, renew(plan, { names: ["apiserver.crt"], now })), said);
    const { skipped } = await renew(plan, { now, dryRun: true });
    assert.ok(skipped.map((line) => line.replaceAll(plan.folder, "F")).includes(said), skipped.join("\n"));
    const before = everything(plan);
    const ended = await problemOf(plan, renew(plan, { now: now + 366 * dayMs, onlyExpiring: true }));
    const expired = said.replace("cannot", "expired on 2031-01-01T00:00:00Z and cannot");
    assert.ok(ended.split("\n").includes(expired), ended);
    assert.deepEqual(everything(plan), before);
  });

test("a file that cannot be read is an error by name, and else a message", async (t) => {
  const plan = aPlan(t);
  await makeMissing(plan);
  put(plan, "pki/etcd/peer.crt", "nonsense");
  const said = "F/pki/etcd/peer.crt cannot be renewed: it is no certificate in PEM form";
  assert.equal(await problemOf(plan, renew(plan, { names: ["etcd-peer"] })), said);
  const { paths, skipped } = await renew(plan, { dryRun: true });
  assert.deepEqual([paths.length, skipped.map((line) => line.replaceAll(plan.folder, "F"))], [12, [said]]);
  assert.equal(
    await problemOf(plan, renew(plan, { names: ["one", "apiserver", "two"] })).then((text) => text.split(";")[0]),
    "there is no certificate one, two in F",
  );
});

test("check says what it cannot read and whose authority is elsewhere; an empty folder has none", async (t) => {
  const plan = aPlan(t);
  assert.deepEqual(await run(plan, 0, "check"), { code: 0, lines: [`there are no certificates in ${plan.folder}`] });
  const now = Date.UTC(2030, 0, 1);
  await makeMissing(plan, { now });
  const foreign = await newCertificate({
    commonName: "x",
    usages: ["server"],
    ca: await newCa({ commonName: "elsewhere", now }),
    now,
  });
  put(plan, "pki/more.crt", foreign.certPem);
  put(plan, "pki/apiserver.crt", "nonsense");
  const { code, lines } = await run(plan, now, "check", "-o", "json");
  const { certificates, unreadable } = JSON.parse(lines.join("\n"));
  assert.equal(code, 1);
  assert.deepEqual(unreadable, [
    { name: "apiserver", path: join(plan.folder, "pki/apiserver.crt"), reason: "it is no certificate in PEM form" },
  ]);
  assert.partialDeepStrictEqual(
    certificates.find(({ name }: { name: string }) => name === "more"),
    { authority: "CN=elsewhere (not of this folder)", state: "valid", subject: "CN=x" },
  );
  remove(plan, "pki/apiserver.crt");
  assert.equal((await run(plan, now - dayMs, "check")).code, 1, "not valid yet");
  assert.match(
    (await run(plan, now - dayMs, "check")).lines.join("\n"),
    /^more +2031-01-01T00:00:00Z +not valid yet +CN=elsewhere \(not of this folder\) +CN=x$/m,
  );
});

test("a problem is printed line by line, another error is thrown", async (t) => {
  const plan = aPlan(t);
  await makeMissing(plan);
  remove(plan, "pki/etcd/peer.key");
  remove(plan, "pki/sa.key");
  let printed = "";
  t.mock.method(process.stderr, "write", (text: string) => {
    printed += text;
    return true;
  });
  assert.deepEqual(await run(plan, Date.now()), { code: 1, lines: [] });
  assert.match(printed, /^error: \S+peer\.key is missing, [^\n]*\nerror: \S+sa\.key is missing, [^\n]*\n$/);
  const broken = newCertsCommand({
    program: "certs",
    plan: () => {
      throw new TypeError("broken");
    },
  });
  await assert.rejects(runCerts(broken, ["--dry-run"]), TypeError);
});
