/**
 * GET /debug/explain/namespaces/<namespace>/<resource>/<name> and /debug/explain/<resource>/<name>: why an object is not healthy.
 * `?about=node/<name>`: why a pod is not on that node. `?watch=1`: an explanation for each change, until the object is healthy.
 */

import type { DecisionReader, ObjectRef } from "@coxswain/apimachinery/decisions/decision";
import { badRequest, methodNotSupported, notFound, tooManyRequests } from "@coxswain/apimachinery/objects/errors/status-error";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Node, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { Authorizer } from "../authorization/authorizer.ts";
import { forbiddenError } from "../filters/authorization.ts";
import type { ServedResource, ServedResources } from "../handlers/served-resources.ts";
import type { ServerRequest } from "../request/server-request.ts";
import { Explainer } from "./explainer.ts";
import type { Explanation, Finding } from "./explanation.ts";
import { resourceNamed } from "./names.ts";
import { couldBeThere, gatherNodeFacts, nodeProblems } from "./not-there.ts";
import { RightsReader } from "./rights-reader.ts";
import { isSeen } from "./rule.ts";
import { explanationTable, explanationText } from "./text.ts";

const explainPrefix = "/debug/explain/";

/** Polling interval of a watch. */
const pollMs = 2_000;
/** A watch ends this long before the timeout of its request. */
const endBeforeMs = 1_000;
/** Limit of concurrent watches per server. */
const mostWatches = 64;

interface ExplainOptions {
  readonly resources: ServedResources;
  readonly authorize: Authorizer;
  readonly decisions: DecisionReader;
  readonly turns: Turns;
  readonly clock: Clock;
}

interface Target {
  readonly served: ServedResource;
  readonly namespace: string;
  readonly name: string;
}

type Format = "json" | "text" | "table";
const typeOf: Readonly<Record<Format, string>> = {
  json: "application/json",
  table: "application/json",
  text: "text/plain; charset=utf-8",
};

export class ExplainPages {
  readonly #options: ExplainOptions;
  #watches = 0;

  constructor(options: ExplainOptions) {
    this.#options = options;
  }

  /** @returns undefined for other paths */
  handle(request: ServerRequest): Promise<void> | undefined {
    return request.info.path.startsWith(explainPrefix) ? this.#answer(request) : undefined;
  }

  async #answer(request: ServerRequest): Promise<void> {
    const { exchange, info, query } = request;
    if (exchange.method !== "GET") throw methodNotSupported({ group: "", resource: "explain" }, info.verb);
    const target = targetOf(this.#options.resources, info.path);
    const about = query.get("about") ?? "";
    const format = formatOf(query.get("output"), exchange.headers.accept);
    const explain = (): Promise<Explanation> =>
      about === "" ? this.#explain(request, target) : this.#explainAbsence(request, target, about);
    if (isOff(query.get("watch"))) {
      exchange.respond(200, { "content-type": typeOf[format] }, this.#written(await explain(), format));
      return;
    }
    await this.#watch(request, format, explain);
  }

  #reader({ user, signal }: ServerRequest): RightsReader {
    const { resources, authorize, turns, clock } = this.#options;
    return new RightsReader({ resources, authorize, user, turns, signal, now: clock.now() });
  }

  async #explain(request: ServerRequest, target: Target): Promise<Explanation> {
    const reader = this.#reader(request);
    const { object, ref } = await this.#read(request, reader, target);
    return new Explainer(reader, this.#options.decisions, request.signal).explain({ object, ref });
  }

  async #explainAbsence(request: ServerRequest, target: Target, about: string): Promise<Explanation> {
    const slash = about.indexOf("/");
    const other = resourceNamed(this.#options.resources, about.slice(0, slash));
    const isPod = target.served.definition.resource === "pods" && target.served.definition.group === "";
    if (other?.definition.resource !== "nodes" || !isPod) {
      throw badRequest(`about=${about} of a ${target.served.definition.singular}: only pods about node/<name> are explained`);
    }
    const reader = this.#reader(request);
    const { object: pod, ref } = await this.#read(request, reader, target);
    const nodeTarget = { served: other, namespace: "", name: about.slice(slash + 1) };
    const { object: node } = await this.#read(request, reader, nodeTarget);
    const facts = await gatherNodeFacts(pod as Pod, node as Node, reader); // cast: read by these resources above
    const isThere = (pod as Pod).spec.nodeName === node.metadata.name; // cast: read by this resource above
    const found = nodeProblems(facts);
    const chain: Finding[] = isThere
      ? []
      : (found.length > 0 ? found : [couldBeThere]).map((problem) => ({ object: ref, by: "explain", ...problem })).reverse();
    const cause = chain.at(-1);
    return {
      kind: "Explanation",
      apiVersion: "diagnostics.coxswain.dev/v1",
      object: ref,
      healthy: isThere,
      ...(cause && { cause }),
      chain,
    };
  }

  /** @throws Forbidden, NotFound as a GET of the object does */
  async #read(
    { user }: ServerRequest,
    reader: RightsReader,
    { served, namespace, name }: Target,
  ): Promise<{ object: KubeObject; ref: ObjectRef }> {
    const { resource, group } = served.definition;
    const object = await reader.get(resource, group, namespace, name);
    if (object === "missing") throw notFound({ resource, group }, name);
    if (!isSeen(object)) {
      const attributes = { user, verb: "get", isResourceRequest: true, namespace, group, version: "", resource };
      throw forbiddenError({ ...attributes, subresource: "", name, path: "" }, "");
    }
    return { object, ref: reader.refOf(object, resource, group) };
  }

  async #watch(request: ServerRequest, format: Format, explain: () => Promise<Explanation>): Promise<void> {
    if (this.#watches >= mostWatches) throw tooManyRequests("too many explanations are being watched; try again later", 5);
    this.#watches++;
    try {
      let explanation = await explain();
      const { clock } = this.#options;
      const { exchange, signal, deadlineMs = Number.POSITIVE_INFINITY } = request;
      const stream = exchange.stream(200, { "content-type": typeOf[format] });
      // Like a watch, it releases its seats of priority and fairness while it waits.
      exchange.onUnread?.();
      let last: string | undefined;
      for (;;) {
        // Decisions are left out of the comparison: a repeated decision is not a change.
        const { decisions: _, ...rest } = explanation;
        const key = JSON.stringify(rest);
        if (key !== last && !stream.write(Buffer.from(this.#written(explanation, format)))) await stream.drained();
        last = key;
        if (explanation.healthy || clock.now() + pollMs >= deadlineMs - endBeforeMs) break;
        await clock.sleep(pollMs, signal);
        explanation = await explain();
      }
      stream.end();
    } finally {
      this.#watches--;
    }
  }

  #written(explanation: Explanation, format: Format): string {
    const now = this.#options.clock.now();
    if (format === "text") return explanationText(explanation, now);
    return `${JSON.stringify(format === "table" ? explanationTable(explanation, now) : explanation)}\n`;
  }
}

const isOff = (value: string | null): boolean => value === null || value === "0" || value.toLowerCase() === "false";

/** @throws NotFound for a path of another form or an unknown resource */
function targetOf(resources: ServedResources, path: string): Target {
  const parts = path.slice(explainPrefix.length).split("/");
  const isNamespaced = parts.length === 4 && parts[0] === "namespaces";
  const [resource = "", name = ""] = isNamespaced ? parts.slice(2) : parts;
  if ((!isNamespaced && parts.length !== 2) || resource === "" || name === "") {
    throw badRequest(
      `${path}: the form is ${explainPrefix}namespaces/<namespace>/<resource>[.<group>]/<name> or ${explainPrefix}<resource>[.<group>]/<name>`,
    );
  }
  const served = resourceNamed(resources, resource);
  if (served === undefined) throw badRequest(`the server doesn't have a resource type ${JSON.stringify(resource)}`);
  if (served.definition.namespaced && !isNamespaced) {
    throw badRequest(
      `${served.definition.resource} have a namespace: ${explainPrefix}namespaces/<namespace>/${resource}/${name}`,
    );
  }
  // The namespace is ignored for cluster-scoped resources: a client need not know which resources are namespaced.
  return { served, namespace: served.definition.namespaced ? parts[1]! : "", name };
}

/** @param output `?output=`, for clients that cannot choose their Accept header @throws BadRequest */
function formatOf(output: string | null, accept = ""): Format {
  if (output === "json" || output === "text" || output === "table") return output;
  if (output !== null && output !== "") throw badRequest(`output=${output}: it is json, text or table`);
  const [first = ""] = accept.split(",");
  if (/as=Table/.test(first)) return "table";
  return first.trim().startsWith("text/plain") ? "text" : "json";
}
