import { Agent } from "node:https";
import { serverIdentityFault } from "@coxswain/apimachinery/transport/connect";

interface KeptConnectionsOptions {
  /** Shorter than the idle timeout of a kubelet, 90 s. */
  readonly idleMs?: number;
  /** Of all nodes together: each takes some 100 kB. */
  readonly mostIdle?: number;
}

/** Source: k8s.io/apimachinery pkg/util/net/http.go MaxIdleConnsPerHost */
const mostIdleOfNode = 25;

/**
 * Connections to kubelets that wait for the next request to the same address with the same certificates. A connection that was made with
 * other certificates, ours or the authorities that the kubelet was verified by, is not used again. TLS sessions are not resumed: a
 * resumed handshake verifies no certificate.
 */
export function newKeptConnections({ idleMs = 30_000, mostIdle = 100 }: KeptConnectionsOptions = {}): Agent {
  const agent = new Agent({
    keepAlive: true,
    timeout: idleMs,
    maxFreeSockets: mostIdleOfNode,
    maxCachedSessions: 0,
    checkServerIdentity: serverIdentityFault, // Node keeps no connection that a request has verified by a function of its own
  });
  const { keepSocketAlive } = agent;
  const idle = (): number => Object.values(agent.freeSockets).reduce((count, sockets) => count + (sockets?.length ?? 0), 0);
  return Object.assign(agent, {
    keepSocketAlive: (socket: Parameters<typeof keepSocketAlive>[0]) => idle() < mostIdle && keepSocketAlive.call(agent, socket),
  });
}
