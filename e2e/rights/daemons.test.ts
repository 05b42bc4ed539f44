/**
 * Every daemon works with the rights of its upstream role: after all that the other tests had it do, and a round of its
 * own, the audit knows of no refusal.
 */
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { subjectOf } from "@coxswain/apimachinery/serving/certificates";
import { auditLog } from "@coxswain/dev-cluster/daemons";
import { pkiFile } from "@coxswain/dev-cluster/pki";
import { getJson, kubectl, settings, tryKubectl } from "../framework/kubectl.ts";
import { newNamespace } from "../framework/namespace.ts";
import { waitFor } from "../framework/wait-for.ts";

interface AuditEvent {
  requestReceivedTimestamp: string;
  verb: string;
  requestURI: string;
  userAgent?: string;
  user: { username: string; groups?: string[] };
  responseStatus?: { code?: number };
  annotations?: Record<string, string>;
  objectRef?: { resource: string; namespace?: string; name?: string };
}

/** Whom each daemon may be, by the name with which its user agent begins. */
const daemons: Readonly<Record<string, RegExp>> = {
  "kube-controller-manager": /^system:(kube-controller-manager|serviceaccount:kube-system:[a-z-]+)$/,
  "kube-scheduler": /^system:kube-scheduler$/,
  kubelet: /^system:node:[a-z0-9.-]+$/,
};

/** What was asked since the API server said that it is ready: before, it does not know the roles yet. */
function readAudit(): AuditEvent[] {
  const lines = readFileSync(auditLog(settings), "utf8").split("\n").slice(0, -1);
  const events = lines.map((line) => JSON.parse(line) as AuditEvent);
  const ready = events.findIndex((event) => event.requestURI === "/readyz" && event.responseStatus?.code === 200);
  assert.ok(ready >= 0, "nobody saw the API server ready");
  const readyAt = events[ready]?.requestReceivedTimestamp ?? "";
  return events.slice(ready).filter((event) => event.requestReceivedTimestamp > readyAt);
}

const daemonOf = (event: AuditEvent): string | undefined =>
  Object.keys(daemons).find((name) => event.userAgent?.startsWith(`${name}/`));

test("no daemon is refused what it asks for, and none is in system:masters", async (t) => {
  if (!existsSync(auditLog(settings))) return t.skip("this cluster has no audit: COX_AUDIT_POLICY");
  const namespace = await newNamespace(t, "rights");
  const untilTold = ["sh", "-c", "trap exit TERM; sleep 3600 & wait"];
  await kubectl("-n", namespace, "create", "deployment", "web", "--image=busybox:1.35", "--", ...untilTold);
  await kubectl("-n", namespace, "expose", "deployment", "web", "--port=80");
  await kubectl("-n", namespace, "rollout", "status", "deployment/web", "--timeout=180s");
  // The API server's own way to the kubelet.
  assert.equal(await kubectl("-n", namespace, "exec", "deployment/web", "--", "echo", "hello"), "hello\n");
  await kubectl("-n", namespace, "scale", "deployment/web", "--replicas=0");
  await waitFor("the pods are gone", async () => {
    return (await getJson<{ items: unknown[] }>("pods", "-n", namespace)).items.length === 0;
  });

  const events = readAudit();
  for (const [name, allowed] of Object.entries(daemons)) {
    const own = events.filter((event) => daemonOf(event) === name);
    assert.ok(own.length > 0, `${name} asked for nothing`);
    const others = new Set(own.map(({ user }) => user.username).filter((user) => !allowed.test(user)));
    assert.deepEqual([...others], [], `${name} is somebody else`);
    const mighty = own.filter(({ user }) => user.groups?.includes("system:masters"));
    assert.deepEqual(mighty.map(summaryOf), [], `${name} is in system:masters`);
    const refused = own.filter((event) => isRefused(event) && !isForGonePod(event, events));
    assert.deepEqual([...new Set(refused.map(summaryOf))], [], `${name} was refused`);
  }
});

/** By the authorizer, or by NodeRestriction. A namespace that is going refuses an agent's events and tokens too, as it should. */
function isRefused({ annotations = {}, responseStatus, user, verb, requestURI }: AuditEvent): boolean {
  if (annotations["authorization.k8s.io/decision"] === "forbid" || responseStatus?.code === 401) return true;
  const isAgent = user.groups?.includes("system:nodes") === true;
  const mayBeGoing = verb === "create" && requestURI.startsWith("/api/v1/namespaces/");
  return responseStatus?.code === 403 && isAgent && !mayBeGoing;
}

const soonMs = 60_000;

/** An agent may still be at work on a pod that somebody took away at once: what the pod named is not its node's to read any more. */
function isForGonePod({ annotations, objectRef, requestReceivedTimestamp: at }: AuditEvent, all: readonly AuditEvent[]): boolean {
  if (!annotations?.["authorization.k8s.io/reason"]?.includes("no relationship found")) return false;
  return all.some(({ user, verb, objectRef: taken, requestReceivedTimestamp }) => {
    if (!verb.startsWith("delete") || user.groups?.includes("system:nodes")) return false;
    const home = { pods: taken?.namespace, namespaces: taken?.name }[taken?.resource ?? ""];
    const agoMs = Date.parse(at) - Date.parse(requestReceivedTimestamp);
    return home !== undefined && home === objectRef?.namespace && agoMs >= 0 && agoMs < soonMs;
  });
}

function summaryOf({ user, verb, requestURI, annotations }: AuditEvent): string {
  return `${user.username} ${verb} ${requestURI} ${annotations?.["authorization.k8s.io/reason"] ?? ""}`;
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
