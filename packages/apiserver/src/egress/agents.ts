/** HTTP agents that connect through a tunnel. */

import { type AgentOptions, Agent as HttpsAgent } from "node:https";
import { type Connect, connectingOver, serverIdentityFault } from "@coxswain/apimachinery/transport/connect";
import { Agent as HttpAgent } from "@coxswain/apimachinery/transport/node-http";

/** @param tunnel undefined for direct connections; TLS is end to end with the target */
export function tunnelledAgent(options: AgentOptions, tunnel: Connect | undefined): HttpsAgent {
  const agent = new HttpsAgent({ checkServerIdentity: serverIdentityFault, ...options });
  return tunnel === undefined ? agent : connectingOver(agent, tunnel, true);
}

/** Like `tunnelledAgent`, for a single request without TLS. */
export function tunnelledPlainAgent(tunnel: Connect): HttpAgent {
  return connectingOver(new HttpAgent(), tunnel, false);
}
