import assert from "node:assert/strict";
import { test } from "node:test";
import { newCertificate } from "@coxswain/apimachinery/serving/certificates";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { startTlsEtcd } from "../../testing/tls-etcd.ts";
import type { EtcdIdentity } from "./channel.ts";
import { newEtcdClient } from "./client.ts";

test("an expired client certificate is named when etcd refuses it, and a renewed one is shown without a restart", async (t) => {
  const etcd = await startTlsEtcd(t, ["127.0.0.1"]);
  const ca = { certPem: etcd.ca, keyPem: etcd.caKey };
  const issue = async (validity: { validDays?: number; now?: number }): Promise<EtcdIdentity> => {
    const { certPem, keyPem } = await newCertificate({ commonName: "apiserver", usages: ["client"], ca, ...validity });
    return { cert: Buffer.from(certPem), key: Buffer.from(keyPem), certFile: "/pki/apiserver-etcd-client.crt" };
  };
  let identity = await issue({ validDays: 1, now: Date.now() - 2 * 86_400_000 });
  const servers = [`https://127.0.0.1:${etcd.port}`];
  const client = newEtcdClient({ servers, ca: Buffer.from(etcd.ca), identity: () => identity, deadlineMs: 2_000 });
  t.after(() => client.close());
  const expired = /client certificate has expired .*subject CN=apiserver, file \/pki\/apiserver-etcd-client\.crt/;
  const refusal = () =>
    client.range({ key: "x" }).then(
      () => "",
      (err: unknown) => String((err as Error).message),
    );
  await waitFor(async () => expired.test(await refusal()), { timeoutMs: 60_000, what: "the refusal that names the certificate" });
  identity = await issue({});
  await waitFor(
    () =>
      client.put("x", Buffer.from("1")).then(
        () => true,
        () => false,
      ),
    {
      timeoutMs: 60_000,
      what: "a connection with the renewed certificate",
    },
  );
  await client.compact(1).catch((err: unknown) => assert.match(String(err), /compact/));
  const status = await client.status(0);
  assert.ok(status.dbSizeBytes === undefined || status.dbSizeBytes > 0);
});
