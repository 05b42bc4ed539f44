import assert from "node:assert/strict";
import { createPrivateKey, X509Certificate } from "node:crypto";
import { once } from "node:events";
import { appendFileSync, cpSync, existsSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { connect, createServer } from "node:tls";
import { certificatesIn, PkiError } from "./files.ts";
import { readKubeconfig } from "./kubeconfig-file.ts";
import { makeMissing } from "./make.ts";
import type { PkiPlan } from "./plan.ts";
import { rotateAuthorities, rotationStages, trustAuthorities } from "./rotate.ts";

function aPlan(t: TestContext): PkiPlan {
  const folder = mkdtempSync(join(tmpdir(), "cox-rotate-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return {
    folder,
    nodeName: "one",
    apiserverNames: ["10.96.0.1"],
    etcdNames: [],
    kubeletNames: [],
    kubeletClientGroups: ["system:masters"],
    server: () => "https://127.0.0.1:6443",
  };
}

async function aPki(t: TestContext): Promise<PkiPlan> {
  const plan = aPlan(t);
  await makeMissing(plan);
  return plan;
}

/** A copy of the folder as it is now: of a machine that keeps these files while `plan` is rotated. */
function copyOf(t: TestContext, plan: PkiPlan): PkiPlan {
  const { folder } = aPlan(t);
  cpSync(plan.folder, folder, { recursive: true });
  return { ...plan, folder };
}

const read = (plan: PkiPlan, file: string): string => readFileSync(join(plan.folder, file), "utf8");
const everything = (plan: PkiPlan) =>
  globSync("**/*.{crt,key,conf}", { cwd: plan.folder })
    .sort()
    .map((path) => [path, read(plan, path)]);

interface Side {
  readonly plan: PkiPlan;
  readonly identity: string;
  readonly trusts: string;
}

/** @returns whether a client and a server, each with the files of its machine, trust each other */
async function areConnected(
  client: { cert: string; key: string; ca: string },
  { plan, identity, trusts }: Side,
): Promise<boolean> {
  const server = createServer({
    cert: read(plan, `pki/${identity}.crt`),
    key: read(plan, `pki/${identity}.key`),
    ca: certificatesIn(read(plan, `pki/${trusts}.crt`)),
    requestCert: true,
    rejectUnauthorized: true,
  });
  server.on("tlsClientError", () => {});
  server.on("secureConnection", (socket) => socket.end("ok"));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const socket = connect({
    ...client,
    ca: certificatesIn(client.ca),
    port: (server.address() as AddressInfo).port,
    servername: "localhost",
  });
  try {
    const [data] = (await once(socket, "data")) as [Buffer];
    return data.toString() === "ok";
  } catch {
    return false;
  } finally {
    socket.destroy();
    server.close();
  }
}

const pairs = [
  { client: "pki/apiserver-kubelet-client", server: "kubelet", trusts: "ca" },
  { client: "pki/apiserver-etcd-client", server: "etcd/server", trusts: "etcd/ca" },
  { client: "pki/etcd/peer", server: "etcd/peer", trusts: "etcd/ca" },
  { client: "admin.conf", server: "apiserver", trusts: "ca" },
  { client: "kubelet.conf", server: "apiserver", trusts: "ca" },
];

function clientOf(plan: PkiPlan, { client, trusts }: (typeof pairs)[number]): { cert: string; key: string; ca: string } {
  if (!client.endsWith(".conf"))
    return { cert: read(plan, `${client}.crt`), key: read(plan, `${client}.key`), ca: read(plan, `pki/${trusts}.crt`) };
  const { users, authorities } = readKubeconfig(read(plan, client), client);
  return { cert: users[0]?.certPem ?? "", key: users[0]?.keyPem ?? "", ca: authorities[0] ?? "" };
}

test("a machine at one stage and a machine at the next trust each other, in both directions; at the end the old authority is not trusted", async (t) => {
  const machine = await aPki(t);
  const first = copyOf(t, machine);
  for (const stage of rotationStages) {
    const before = copyOf(t, machine);
    assert.notEqual((await rotateAuthorities(machine, stage)).length, 0, stage);
    for (const pair of pairs)
      for (const [client, server] of [
        [before, machine],
        [machine, before],
        [machine, machine],
      ] as const)
        assert.ok(
          await areConnected(clientOf(client, pair), { plan: server, identity: pair.server, trusts: pair.trusts }),
          `${stage}: ${pair.client} to ${pair.server}, ${client === before ? "before" : "after"}`,
        );
    // The controller manager needs a signing certificate that is alone in its file and belongs to the key.
    const signer = stage === "finish" ? "pki/ca.crt" : "pki/ca-signer.crt";
    assert.equal(certificatesIn(read(machine, signer)).length, 1);
    assert.ok(new X509Certificate(read(machine, signer)).checkPrivateKey(createPrivateKey(read(machine, "pki/ca.key"))));
    const done = everything(machine);
    assert.deepEqual(await rotateAuthorities(machine, stage), [], `${stage} again`);
    assert.deepEqual(everything(machine), done);
  }
  for (const pair of pairs)
    for (const [client, server] of [
      [first, machine],
      [machine, first],
    ] as const)
      assert.equal(
        await areConnected(clientOf(client, pair), { plan: server, identity: pair.server, trusts: pair.trusts }),
        false,
      );
  assert.deepEqual(globSync("**/*-{next,signer}*", { cwd: machine.folder }), []);
  assert.equal(read(machine, "pki/sa.key"), read(first, "pki/sa.key"));
  assert.deepEqual(await makeMissing(machine), []);
});

test("a stage is refused before the previous one and without the new authorities, and nothing is written", async (t) => {
  const machine = await aPki(t);
  const before = everything(machine);
  await assert.rejects(
    rotateAuthorities(machine, "sign"),
    (err) => err instanceof PkiError && /run the stage trust/.test(err.message),
  );
  assert.deepEqual(await rotateAuthorities(machine, "finish"), []);
  assert.deepEqual(everything(machine), before);
  const dry = await rotateAuthorities(machine, "trust", { dryRun: true });
  assert.ok(dry.some(({ path }) => path.endsWith("pki/ca-next.crt")));
  assert.deepEqual(everything(machine), before);
  await rotateAuthorities(machine, "trust");
  await assert.rejects(rotateAuthorities(machine, "finish"), /run the stage sign first/);
  const other = copyOf(t, machine);
  rmSync(join(other.folder, "pki", "ca-next.key"));
  await assert.rejects(rotateAuthorities(other, "sign"), /copy both from a machine/);
  cpSync(join(other.folder, "pki", "sa.key"), join(other.folder, "pki", "ca-next.key"));
  await assert.rejects(rotateAuthorities(other, "sign"), /pki\/ca-next\.crt does not match the key in the same folder/);
  writeFileSync(join(other.folder, "pki", "ca-next.crt"), "nonsense");
  await assert.rejects(rotateAuthorities(other, "sign"), /pki\/ca-next\.crt does not match the key in the same folder/);
});

test("a second machine uses the new authorities that were copied to it", async (t) => {
  const one = await aPki(t);
  const two = copyOf(t, one);
  await rotateAuthorities(one, "trust");
  for (const path of globSync("**/*-next*", { cwd: one.folder })) cpSync(join(one.folder, path), join(two.folder, path));
  await rotateAuthorities(two, "trust");
  assert.equal(read(two, "pki/ca.crt"), read(one, "pki/ca.crt"));
  await rotateAuthorities(two, "sign");
  assert.equal(read(two, "pki/ca.key"), read(one, "pki/ca-next.key"));
});

test("an interrupted stage is resumed", async (t) => {
  const machine = await aPki(t);
  await rotateAuthorities(machine, "trust");
  const half = copyOf(t, machine);
  await rotateAuthorities(machine, "sign");
  // Interrupted after the bundle was written, before the key and the certificates.
  writeFileSync(join(half.folder, "pki/ca.crt"), read(machine, "pki/ca.crt"));
  await rotateAuthorities(half, "sign");
  assert.equal(read(half, "pki/ca.key"), read(machine, "pki/ca.key"));
  assert.equal(existsSync(join(half.folder, "pki/ca-next.key")), true);
  const pair = pairs[3] as (typeof pairs)[number];
  assert.ok(await areConnected(clientOf(half, pair), { plan: half, identity: "apiserver", trusts: "ca" }));
});

test("a node's kubeconfigs get the authorities, and those of another cluster stay as they are", async (t) => {
  const [machine, foreign] = [await aPki(t), await aPki(t)];
  const node = copyOf(t, machine);
  cpSync(join(foreign.folder, "services.conf"), join(node.folder, "services.conf"));
  appendFileSync(join(node.folder, "kubelet.conf"), "\n");
  await rotateAuthorities(machine, "trust");
  const bundle = read(machine, "pki/ca.crt");
  assert.deepEqual(
    trustAuthorities(node, bundle).map(({ path }) => path.slice(node.folder.length + 1)),
    ["pki/ca.crt", "admin.conf", "controller-manager.conf", "scheduler.conf", "kubelet.conf"],
  );
  assert.deepEqual(readKubeconfig(read(node, "kubelet.conf"), "").authorities, [bundle]);
  assert.equal(read(node, "services.conf"), read(foreign, "services.conf"));
  assert.deepEqual(trustAuthorities(node, bundle), []);
});
