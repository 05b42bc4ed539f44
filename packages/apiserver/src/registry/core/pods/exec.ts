import { badRequest } from "@coxswain/apimachinery/objects/errors/status-error";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { CatalogueConfig } from "../../config.ts";
import type { ConnectTarget, SubresourceCall } from "../../generic/resource.ts";
import { kubeletOf } from "../nodes/connection.ts";
import { chooseContainer } from "./container-choice.ts";

type Connect = (call: SubresourceCall, path: string) => Promise<ConnectTarget>;

/**
 * exec, attach and port-forward: upgraded connections to the kubelet of the pod's node, whose query parameters have other names
 * (`input` for `stdin`).
 * Source: pkg/registry/core/pod/rest/subresources.go, pkg/registry/core/pod/strategy.go streamLocation
 */
export function connectExec(config: CatalogueConfig): Connect {
  return (call) => toContainer(call, config, "exec", call.ctx.query.getAll("command"));
}

/** `/attach`: the process that the container runs; the container is chosen as for exec. */
export function connectAttach(config: CatalogueConfig): Connect {
  return (call) => toContainer(call, config, "attach", []);
}

async function toContainer(
  call: SubresourceCall,
  config: CatalogueConfig,
  verb: "exec" | "attach",
  command: readonly string[],
): Promise<ConnectTarget> {
  const { query } = call.ctx;
  const pod = await podOf(call);
  const container = chooseContainer(pod, query.get("container") ?? "");
  const url = await kubeletOf(call, nodeNameOf(pod), config);
  url.pathname = `/${verb}/${encode(pod.metadata.namespace)}/${encode(pod.metadata.name)}/${encode(container)}`;
  url.search = streamQuery(query, command).toString();
  return { url, toNode: true, as: "tunnel" };
}

/** `/portforward`: `?ports=` may repeat and list several. @throws BadRequest for a malformed port */
export function connectPortForward(config: CatalogueConfig): Connect {
  return async (call) => {
    const ports = call.ctx.query.getAll("ports").flatMap((value) => value.split(",").map(parsePort));
    const pod = await podOf(call);
    const url = await kubeletOf(call, nodeNameOf(pod), config);
    url.pathname = `/portForward/${encode(pod.metadata.namespace)}/${encode(pod.metadata.name)}`;
    for (const port of ports) url.searchParams.append("port", String(port));
    return { url, toNode: true, as: "tunnel" };
  };
}

/** @throws BadRequest. Source: apimachinery pkg/runtime/conversion.go; Go's strconv.ParseUint */
function parsePort(text: string): number {
  const number = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (number <= 65535) return number;
  const why = Number.isNaN(number) ? "invalid syntax" : "value out of range";
  throw badRequest(`cannot convert to []int32: strconv.ParseUint: parsing ${JSON.stringify(text)}: ${why}`);
}

/** The pod of the request; may be read from the watch cache. @throws NotFound */
export async function podOf(call: SubresourceCall): Promise<Pod> {
  return (await call.services.store("", "pods").get(call.namespace, call.name, { minimumRevision: 0 })).object<Pod>();
}

function nodeNameOf(pod: Pod): string {
  if (!pod.spec.nodeName) throw badRequest(`pod ${pod.metadata.name} does not have a host assigned`);
  return pod.spec.nodeName;
}

/** Boolean query value: anything but `false` and `0` is true. Source: k8s.io/apimachinery pkg/runtime/converter */
export function isTrue(query: URLSearchParams, name: string): boolean {
  const value = query.get(name);
  return value !== null && value.toLowerCase() !== "false" && value !== "0";
}

function streamQuery(query: URLSearchParams, command: readonly string[]): URLSearchParams {
  // stdout and stderr default to true, for older clients.
  const on = (name: string, byDefault: boolean): boolean => (query.has(name) ? isTrue(query, name) : byDefault);
  const params = new URLSearchParams();
  if (on("stdin", false)) params.append("input", "1");
  if (on("stdout", true)) params.append("output", "1");
  if (on("stderr", true)) params.append("error", "1");
  if (on("tty", false)) params.append("tty", "1");
  for (const word of command) params.append("command", word);
  return params;
}

function encode(part: string | undefined): string {
  return encodeURIComponent(part ?? "");
}
