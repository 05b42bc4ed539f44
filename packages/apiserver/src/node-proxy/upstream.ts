/**
 * Requests served by another process: log, exec, attach and port-forward of a kubelet, proxies to nodes, pods and services.
 *
 * The checked address is the one dialed. The API server's client certificate is sent to kubelets only, and the client's
 * credentials are never forwarded.
 * Source: k8s.io/apimachinery pkg/util/proxy/upgradeaware.go, k8s.io/apiserver pkg/registry/generic/rest/streamer.go
 */
import { badRequest } from "@coxswain/apimachinery/objects/errors/status-error";
import type { GroupResource } from "@coxswain/apimachinery/objects/meta/group-version";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { ConnectTarget } from "../registry/generic/resource.ts";
import type { RequestContext } from "../request/context.ts";
import { type Dial, type NodeProxyConfig, resolveTarget } from "./dial.ts";
import { newKeptConnections } from "./kept-connections.ts";
import { streamLog } from "./log.ts";
import { pipe } from "./pipe.ts";
import type { Redirects } from "./redirects.ts";
import { splice } from "./splice.ts";

export interface NodeProxy {
  /**
   * Forwards the current request to the target and answers it.
   * @param resource requested object, for error texts
   * @throws BadRequest when a required upgrade was not requested, or the address is forbidden; the kubelet's errors as
   *   StatusError; 500 or 503 when the target is unreachable.
   */
  forward(ctx: RequestContext, target: ConnectTarget, resource: GroupResource & { name: string }): Promise<void>;
}

interface NodeProxyOptions extends NodeProxyConfig {
  /** For redirects of kubelets on exec, attach and port-forward; undefined: not followed. */
  readonly redirects?: Pick<Redirects, "sameHost"> | undefined;
  /** Default: not shared with the rest of the process. */
  readonly turns?: Turns | undefined;
}

export function newNodeProxy(config: NodeProxyOptions): NodeProxy {
  const dialAgain = (target: ConnectTarget): Promise<Dial> => resolveTarget(target, config);
  const redirects = config.redirects && { ...config.redirects, dial: dialAgain };
  const turns = config.turns ?? new Turns();
  const kept = newKeptConnections();
  if (config.clientCertificate !== undefined && config.certificateAuthority === undefined) {
    // As upstream: the kubelets of most clusters have self-signed serving certificates.
    config.log.warn("certificates of kubelets are not verified, because --kubelet-certificate-authority is not set");
  }
  return {
    async forward(ctx, target, resource) {
      if (target.as === "text") return streamLog(ctx, target, { ...(await resolveTarget(target, config)), kept }, resource);
      const { upgrade } = ctx.exchange;
      if (upgrade !== undefined) {
        const options = { ...config, redirects: target.as === "tunnel" ? redirects : undefined };
        return splice(ctx, upgrade, target, await resolveTarget(target, config, true), options);
      }
      if (target.as === "tunnel") throw badRequest("Upgrade request required");
      return pipe(ctx, target, { ...(await resolveTarget(target, config)), kept }, turns);
    },
  };
}
