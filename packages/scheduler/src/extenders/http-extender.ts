import { readFileSync } from "node:fs";
import { request as httpsRequest, type RequestOptions } from "node:https";
import { onUnsolicitedUpgrade } from "@coxswain/apimachinery/client/unsolicited-upgrade";
import { stringifyWire } from "@coxswain/apimachinery/client/wire-json";
import { isJsonObject } from "@coxswain/apimachinery/objects/meta/json-value";
import type { Container, Node, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { serverIdentityFault } from "@coxswain/apimachinery/transport/connect";
import { request as httpRequest } from "@coxswain/apimachinery/transport/node-http";
import type { NodeInfo } from "../cache/node-info.ts";
import type { ClusterSnapshot } from "../cache/snapshot.ts";
import type { ExtenderConfig } from "../config/file.ts";
import type { Extender, Victims } from "./extender.ts";

/** Source: pkg/scheduler/extender.go DefaultExtenderTimeout */
const defaultTimeoutMs = 5_000;
/** Maximum size of a response in bytes; bounds memory when an extender misbehaves. */
const longestAnswer = 256 * 1024 * 1024;

/**
 * An extender called over HTTP: each verb is a POST of JSON to the URL prefix. Any status other than 200 is a failure.
 * @throws Error when a TLS file of the configuration cannot be read
 */
export function newHttpExtender(config: ExtenderConfig, mostBytes = longestAnswer): Extender {
  const { urlPrefix = "", filterVerb, prioritizeVerb, preemptVerb, bindVerb, weight = 0, ignorable = false } = config;
  const managed = new Set((config.managedResources ?? []).map(({ name = "" }) => name));
  const post = newPost(config, mostBytes);
  const nodesFor = (nodes: readonly NodeInfo[]): { Nodes: unknown; NodeNames: unknown } =>
    config.nodeCacheCapable
      ? { Nodes: null, NodeNames: nodes.map(({ name }) => name) }
      : { Nodes: { metadata: {}, items: nodes.map(({ node }) => node) }, NodeNames: null };

  return {
    name: urlPrefix,
    ignorable,
    binds: Boolean(bindVerb),
    preempts: Boolean(preemptVerb),
    isInterested: ({ spec }) =>
      managed.size === 0 || [...spec.containers, ...(spec.initContainers ?? [])].some((container) => asksFor(container, managed)),

    async filter(pod, nodes) {
      if (!filterVerb) return { feasible: nodes, failed: new Map(), unresolvable: new Map() };
      const answer = fieldsOf(await post(filterVerb, { Pod: pod, ...nodesFor(nodes) }));
      const error = answer("Error");
      if (error) throw new Error(String(error));
      const names = namesIn(answer, config.nodeCacheCapable ?? false);
      const byName = new Map(nodes.map((node) => [node.name, node]));
      const feasible = names.map((name) => {
        const node = byName.get(name);
        if (node !== undefined) return node;
        throw new Error(
          `extender ${JSON.stringify(urlPrefix)} claims a filtered node ${JSON.stringify(name)} which is not found in the input node list`,
        );
      });
      return {
        feasible,
        failed: textsOf(answer("FailedNodes")),
        unresolvable: textsOf(answer("FailedAndUnresolvableNodes")),
      };
    },

    async prioritize(pod, nodes) {
      const scores = new Map<string, number>();
      if (!prioritizeVerb) return scores;
      const answer = await post(prioritizeVerb, { Pod: pod, ...nodesFor(nodes) });
      for (const each of Array.isArray(answer) ? answer : []) {
        const field = fieldsOf(each);
        scores.set(String(field("Host")), integerOf(field("Score")) * weight);
      }
      return scores;
    },

    async preempt(pod, candidates, snapshot) {
      const sent = Object.fromEntries(
        [...candidates].map(([node, { pods, violations }]) => [
          node,
          {
            Pods: config.nodeCacheCapable ? pods.map(({ metadata }) => ({ UID: metadata.uid })) : pods,
            NumPDBViolations: violations,
          },
        ]),
      );
      const args = config.nodeCacheCapable
        ? { NodeNameToVictims: null, NodeNameToMetaVictims: sent }
        : { NodeNameToVictims: sent, NodeNameToMetaVictims: null };
      const answer = fieldsOf(await post(preemptVerb ?? "", { Pod: pod, ...args }));
      const agreed = Object.entries(answer("NodeNameToMetaVictims") ?? {});
      return new Map(agreed.map(([node, victims]): [string, Victims] => [node, victimsOf(urlPrefix, node, victims, snapshot)]));
    },

    async bind({ metadata }, nodeName) {
      const { name, namespace, uid } = metadata;
      const answer = fieldsOf(
        await post(bindVerb ?? "", { PodName: name, PodNamespace: namespace, PodUID: uid, Node: nodeName }),
      );
      const error = answer("Error");
      if (error) throw new Error(String(error));
    },
  };
}

const asksFor = ({ resources }: Container, managed: ReadonlySet<string>): boolean =>
  [...Object.keys(resources?.requests ?? {}), ...Object.keys(resources?.limits ?? {})].some((name) => managed.has(name));

/** Field lookup that ignores case, as encoding/json does: extenders may spell field names differently. */
function fieldsOf(answer: unknown): (name: string) => unknown {
  const given = isJsonObject(answer) ? answer : {};
  const fields = new Map(Object.entries(given).map(([name, value]) => [name.toLowerCase(), value]));
  return (name) => fields.get(name.toLowerCase()) ?? undefined;
}

function namesIn(answer: (name: string) => unknown, byName: boolean): string[] {
  const names = answer("NodeNames");
  if (byName && Array.isArray(names)) return names.map(String);
  const items = fieldsOf(answer("Nodes"))("items");
  return Array.isArray(items) ? items.map(({ metadata }: Node) => metadata.name ?? "") : [];
}

const textsOf = (value: unknown): ReadonlyMap<string, string> =>
  new Map(Object.entries(value ?? {}).map(([name, text]) => [name, String(text)]));

/** Resolves victim UIDs to pods. @throws Error for an unknown node, and for pods that are not on that node */
function victimsOf(url: string, nodeName: string, victims: unknown, snapshot: ClusterSnapshot): Victims {
  const field = fieldsOf(victims);
  const node = snapshot.get(nodeName);
  if (node === undefined) throw new Error(`nodeinfo not found for node name ${JSON.stringify(nodeName)}`);
  const listed = field("Pods") ?? [];
  if (!Array.isArray(listed)) throw new Error(`extender: ${url} returned pods that are not a list`);
  const pods = listed.map((meta: unknown): Pod => {
    const uid = String(fieldsOf(meta)("UID"));
    const found = node.pods.get(uid);
    if (found !== undefined) return found.pod;
    throw new Error(
      `extender: ${url} claims to preempt pod (UID: ${uid}) on node: ${nodeName}, but the pod is not found on that node`,
    );
  });
  return { pods, violations: integerOf(field("NumPDBViolations")) };
}

/** @throws Error for anything but an integer: scores are summed up, and one NaN would spoil the total */
function integerOf(value: unknown): number {
  if (value === undefined) return 0;
  if (typeof value === "number" && Number.isSafeInteger(value)) return value;
  throw new Error(`the extender returned ${JSON.stringify(value)} instead of an integer`);
}

function newPost(config: ExtenderConfig, mostBytes: number): (verb: string, body: object) => Promise<unknown> {
  const { urlPrefix = "", httpTimeout, enableHTTPS = false, tlsConfig } = config;
  const timeoutMs = httpTimeout || defaultTimeoutMs;
  const base = urlPrefix.replace(/\/{1,9}$/, "");
  const tls = tlsOptions(tlsConfig, enableHTTPS);
  const limits = { timeoutMs, mostBytes };
  return async (verb, body) => {
    const url = `${base}/${verb}`;
    const { status, text } = await exchange(url, Buffer.from(stringifyWire(body)), tls, limits);
    if (status !== 200) throw new Error(`failed ${verb} with extender at URL ${url}, code ${status}`);
    return JSON.parse(text);
  };
}

/** With `enableHTTPS` and no CA the server certificate is not verified, as upstream. */
function tlsOptions(tls: ExtenderConfig["tlsConfig"] = {}, enableHttps: boolean): RequestOptions {
  const read = (data: string | undefined, file: string | undefined): Buffer | undefined =>
    data ? Buffer.from(data, "base64") : file ? readFileSync(file) : undefined;
  const ca = read(tls.caData, tls.caFile);
  const options = {
    ca,
    cert: read(tls.certData, tls.certFile),
    key: read(tls.keyData, tls.keyFile),
    servername: tls.serverName,
    checkServerIdentity: serverIdentityFault,
    rejectUnauthorized: !(tls.insecure || (enableHttps && ca === undefined)),
  };
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}

function exchange(
  url: string,
  body: Buffer,
  tls: RequestOptions,
  { timeoutMs, mostBytes }: { timeoutMs: number; mostBytes: number },
): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const request = url.startsWith("https:") ? httpsRequest : httpRequest;
    const headers = { "content-type": "application/json", "content-length": body.length };
    const signal = AbortSignal.timeout(timeoutMs);
    const fail = (err: Error): void =>
      reject(
        new Error(`Post ${JSON.stringify(url)}: ${signal.aborted ? "context deadline exceeded" : err.message}`, { cause: err }),
      );
    const outgoing = request(url, { ...tls, method: "POST", headers, signal }, (response) => {
      const parts: Buffer[] = [];
      let size = 0;
      response.on("data", (part: Buffer) => {
        size += part.length;
        if (size <= mostBytes) return void parts.push(part);
        // Fails here: with its last part, the response could end before the request fails.
        fail(new Error(`the response of ${url} is too long`));
        outgoing.destroy();
      });
      response.on("end", () => resolve({ status: response.statusCode ?? 0, text: Buffer.concat(parts).toString() }));
      response.on("error", reject);
    });
    outgoing.on("error", fail);
    onUnsolicitedUpgrade(outgoing, fail);
    outgoing.end(body);
  });
}
