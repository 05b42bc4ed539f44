import assert from "node:assert/strict";
import { test } from "node:test";
import { newCa, newCertificate } from "@coxswain/apimachinery/serving/certificates";
import { freePort, startOwnEtcd } from "@coxswain/apimachinery/testing/etcd";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { startTlsEtcd } from "@coxswain/apiserver/testing/tls-etcd";
import { EtcdClient, isNotInSync, isTooManyLearners } from "./client.ts";

test("members of a real etcd: a learner is added once, promoted only after its start, and removed", async (t) => {
  const { endpoint } = await startOwnEtcd(t);
  const client = new EtcdClient([endpoint]);
  t.after(() => client.close());
  const [first, ...others] = await client.members();
  assert.deepEqual(others, []);
  assert.match(first?.id ?? "", /^[0-9a-f]{12,16}$/);
  assert.deepEqual([first?.clientUrls, first?.isLearner], [[endpoint], false]);

  const peerUrl = `http://127.0.0.1:${await freePort()}`;
  const added = (await client.addLearner(peerUrl)).find(({ isLearner }) => isLearner);
  assert.ok(added);
  assert.deepEqual([added.name, added.peerUrls, added.clientUrls], ["", [peerUrl], []]);
  assert.deepEqual(
    await client.members(),
    [first, added].toSorted((a, b) => (BigInt(`0x${a?.id}`) < BigInt(`0x${b?.id}`) ? -1 : 1)),
  );

  const failure = (call: Promise<unknown>): Promise<string> =>
    call.then(
      () => assert.fail("it succeeded"),
      (err: Error) => err.message,
    );
  assert.match(await failure(client.addLearner(peerUrl)), /^etcd: etcdserver: .* already exists?$/); // "member ID" within the same second, since the ID depends on the time in seconds; "Peer URLs" later
  assert.ok(isTooManyLearners(await failure(client.addLearner("http://127.0.0.1:1"))));
  assert.ok(isNotInSync(await failure(client.promote(added.id))));
  await client.remove(added.id);
  assert.deepEqual(await client.members(), [first]);
  assert.equal(await failure(client.remove(added.id)), "etcd: etcdserver: member not found");
});

test("an unreachable member's call goes to the next one; when all fail, the error has each reason", async (t) => {
  const { endpoint } = await startOwnEtcd(t);
  const away = `http://127.0.0.1:${await freePort()}`;
  const client = new EtcdClient([away, endpoint]);
  t.after(() => client.close());
  const { version, leader } = await client.status();
  assert.match(version, /^3\.\d+\.\d+$/);
  assert.equal(leader, (await client.members())[0]?.id);

  const alone = new EtcdClient([away, away]);
  t.after(() => alone.close());
  await assert.rejects(alone.members(), /^Error: etcd: .*ECONNREFUSED.*; .*ECONNREFUSED/);
  await assert.rejects(
    alone.snapshot(() => assert.fail("there is nothing to read")),
    /^Error: etcd: .*ECONNREFUSED/,
  );
});

test("a member is reached over TLS by its address, with a certificate that etcd's authority issued; another is refused", async (t) => {
  const etcd = await startTlsEtcd(t, ["127.0.0.1"]);
  const identity = async (authority: { certPem: string; keyPem: string }) => {
    const { certPem, keyPem } = await newCertificate({ commonName: "healthcheck", usages: ["client"], ca: authority });
    return { ca: Buffer.from(etcd.ca), cert: Buffer.from(certPem), key: Buffer.from(keyPem) };
  };
  const own = { certPem: etcd.ca, keyPem: etcd.caKey };
  const urls = [`https://127.0.0.1:${etcd.port}`];
  const client = new EtcdClient(urls, await identity(own));
  t.after(() => client.close());
  const answers = (): Promise<boolean> =>
    client.members().then(
      ({ length }) => length === 1,
      (err: Error) => {
        if (err.message.includes("ECONNREFUSED")) return false; // not listening yet
        throw err;
      },
    );
  await waitFor(answers, { timeoutMs: 60_000, what: "etcd to answer" });

  const other = await newCa({ commonName: "other" });
  const stranger = new EtcdClient(urls, await identity(other));
  t.after(() => stranger.close());
  await assert.rejects(stranger.members(), /^Error: etcd: /);
});
