/**
 * Every daemon works with the permissions of its upstream role: the audit log contains no denial after its start, the work
 * caused by the other tests, and an additional round in this test.
 */
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { subjectOf } from "@coxswain/apimachinery/serving/certificates";
import { auditLog } from "@coxswain/dev-cluster/daemons";
import { pkiFile } from "@coxswain/dev-cluster/pki";
import { type AuditEvent, daemonOf, daemonUsers, isRefused, readAuditLog, summaryOf } from "../framework/audit.ts";
import { getJson, kubectl, settings, tryKubectl } from "../framework/kubectl.ts";
import { newNamespace } from "../framework/namespace.ts";
import { waitFor } from "../framework/wait-for.ts";

test("no daemon is refused what it asks for, and none is in system:masters", async (t) => {
  if (!existsSync(auditLog(settings))) return t.skip("this cluster has no audit: COX_AUDIT_POLICY");
  const namespace = await newNamespace(t, "rights");
  const untilTerminated = ["sh", "-c", "trap exit TERM; sleep 3600 & wait"];
  await kubectl("-n", namespace, "create", "deployment", "web", "--image=busybox:1.35", "--", ...untilTerminated);
  await kubectl("-n", namespace, "expose", "deployment", "web", "--port=80");
  await kubectl("-n", namespace, "rollout", "status", "deployment/web", "--timeout=180s");
  // The API server's connection to the kubelet.
  assert.equal(await kubectl("-n", namespace, "exec", "deployment/web", "--", "echo", "hello"), "hello\n");
  await kubectl("-n", namespace, "scale", "deployment/web", "--replicas=0");
  await waitFor("the pods are gone", async () => {
    return (await getJson<{ items: unknown[] }>("pods", "-n", namespace)).items.length === 0;
  });

  // From the first request on: requests before readiness get 503, never 403.
  const events = readAuditLog(auditLog(settings));
  for (const [name, allowed] of Object.entries(daemonUsers)) {
    const own = events.filter((event) => daemonOf(event) === name);
    assert.ok(own.length > 0, `${name} requested nothing`);
    const others = new Set(own.map(({ user }) => user.username).filter((user) => !allowed.test(user)));
    assert.deepEqual([...others], [], `${name} is somebody else`);
    const mighty = own.filter(({ user }) => user.groups?.includes("system:masters"));
    assert.deepEqual(mighty.map(summaryOf), [], `${name} is in system:masters`);
    const refused = own.filter((event) => isRefused(event) && !isForGonePod(event, events));
    assert.deepEqual([...new Set(refused.map(summaryOf))], [], `${name} was refused`);
  }
});

const soonMs = 60_000;

/**
 * The kubelet may still process a pod that was deleted immediately; it is then no longer allowed to read the objects the pod
 * referred to.
 */
function isForGonePod({ annotations, objectRef, requestReceivedTimestamp: at }: AuditEvent, all: readonly AuditEvent[]): boolean {
  if (!annotations?.["authorization.k8s.io/reason"]?.includes("no relationship found")) return false;
  return all.some(({ user, verb, objectRef: taken, requestReceivedTimestamp }) => {
    if (!verb.startsWith("delete") || user.groups?.includes("system:nodes")) return false;
    const home = { pods: taken?.namespace, namespaces: taken?.name }[taken?.resource ?? ""];
    const agoMs = Date.parse(at) - Date.parse(requestReceivedTimestamp);
    return home !== undefined && home === objectRef?.namespace && agoMs >= 0 && agoMs < soonMs;
  });
}

test("the API server's client certificate gives it the kubelet's API and no more", async () => {
  const certificate = new X509Certificate(readFileSync(pkiFile(settings, "apiserver-kubelet-client.crt")));
  const { commonName, organizations } = subjectOf(certificate);
  assert.deepEqual(organizations, []);
  const can = async (...what: string[]): Promise<string> =>
    (await tryKubectl(["auth", "can-i", ...what, "--as", commonName])).stdout.trim();
  assert.equal(await can("create", "nodes", "--subresource=proxy"), "yes");
  assert.equal(await can("get", "secrets", "-A"), "no");
  assert.equal(await can("delete", "nodes"), "no");
});
