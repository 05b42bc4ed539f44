import { badRequest } from "@coxswain/apimachinery/objects/errors/status-error";
import { goQuote } from "@coxswain/apimachinery/objects/meta/go-quote";
import type { ConnectTarget, SubresourceCall } from "../../generic/resource.ts";
import { hostUrl, proxiedTo, refuseSpecialAddress } from "../nodes/connection.ts";
import { podOf } from "./exec.ts";

/**
 * HTTP proxy to a pod; the name may be `scheme:name:port`. Without a port, the first container port is used.
 * Source: pkg/registry/core/pod/strategy.go ResourceLocation
 */
export async function connectPodProxy(call: SubresourceCall, path: string): Promise<ConnectTarget> {
  const { scheme, name, port } = splitSchemeNamePort("pod", call.name);
  const pod = await podOf({ ...call, name });
  const chosen = port || firstPort(pod.spec.containers ?? []);
  const ip = pod.status?.podIPs?.[0]?.ip ?? pod.status?.podIP ?? "";
  if (ip === "") throw badRequest(`address not allowed`);
  refuseSpecialAddress(ip);
  const url = hostUrl(scheme || "http", ip, chosen || (scheme === "https" ? 443 : 80));
  return { url: proxiedTo(url, call, path), toNode: false, as: "proxy" };
}

function firstPort(containers: readonly { ports?: { containerPort: number }[] }[]): string {
  for (const container of containers) {
    const port = container.ports?.[0]?.containerPort;
    if (port !== undefined) return String(port);
  }
  return "";
}

/** `https:web:8443`, `web:8443`, `web`, `https:web:`. @throws 400. Source: k8s.io/apimachinery pkg/util/net/port_split.go */
export function splitSchemeNamePort(
  what: "pod" | "service" | "node",
  id: string,
): { scheme: string; name: string; port: string } {
  const parts = id.split(":");
  const [scheme = "", name = "", port = ""] = parts.length === 1 ? ["", id] : parts.length === 2 ? ["", ...parts] : parts;
  if (parts.length > 3 || !["", "http", "https"].includes(scheme) || name === "")
    throw badRequest(`invalid ${what} request ${goQuote(id)}`);
  return { scheme, name, port };
}
