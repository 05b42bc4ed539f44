/**
 * Requests that another process answers: log, exec, attach and port-forward of a kubelet, proxies to nodes, pods and
 * services.
 *
 * The address that was checked is the address that is dialled. The API server's client certificate goes to kubelets
 * alone, and credentials of the client go nowhere.
 * Source: k8s.io/apimachinery pkg/util/proxy/upgradeaware.go, k8s.io/apiserver pkg/registry/generic/rest/streamer.go
 */
import { badRequest } from "@coxswain/apimachinery/errors/status-error";
import type { GroupResource } from "@coxswain/apimachinery/meta/group-version";
import type { ConnectTarget } from "../registry/generic/subresource.ts";
import type { RequestContext } from "../request/context.ts";
import { type Dial, type NodeProxyConfig, resolveTarget } from "./dial.ts";
import { streamLog } from "./log.ts";
import { pipe } from "./pipe.ts";
import type { Redirects } from "./redirects.ts";
import { splice } from "./splice.ts";

export interface NodeProxy {
  /**
   * Does what the target says with the present request and answers it.
   * @param resource who is asked for, for error texts
   * @throws BadRequest when an upgrade is needed and was not asked for, or the address is not allowed; the kubelet's
   *   refusals as a Status; 500 or 503 when nobody answers.
   */
  forward(ctx: RequestContext, target: ConnectTarget, resource: GroupResource & { name: string }): Promise<void>;
}

export interface NodeProxyOptions extends NodeProxyConfig {
  /** Of kubelets that redirect exec, attach and port-forward; undefined: they are not followed. */
  readonly redirects?: Pick<Redirects, "sameHost"> | undefined;
}

export function newNodeProxy(config: NodeProxyOptions): NodeProxy {
  const dialAgain = (target: ConnectTarget): Promise<Dial> => resolveTarget(target, config);
  const redirects = config.redirects && { ...config.redirects, dial: dialAgain };
  if (config.clientCertificate !== undefined && config.certificateAuthority === undefined) {
    // As upstream has it: the kubelets of most clusters sign their serving certificates themselves.
    config.log.warn("certificates of kubelets are not verified, because --kubelet-certificate-authority is not set");
  }
  return {
    async forward(ctx, target, resource) {
      if (target.as === "text") return streamLog(ctx, target, await resolveTarget(target, config), resource);
      const { upgrade } = ctx.exchange;
      if (upgrade !== undefined) {
        const options = { ...config, redirects: target.as === "tunnel" ? redirects : undefined };
        return splice(ctx, upgrade, target, await resolveTarget(target, config, true), options);
      }
      if (target.as === "tunnel") throw badRequest("Upgrade request required");
      return pipe(ctx, target, await resolveTarget(target, config));
    },
  };
}
