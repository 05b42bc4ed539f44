/** Agents whose connections go through a tunnel. */
import { Agent as HttpAgent } from "node:http";
import { type AgentOptions, Agent as HttpsAgent } from "node:https";
import { type Connect, connectingOver } from "@coxswain/apimachinery/client/connect";

/** @param tunnel undefined: none; TLS is spoken with the host behind it */
export function tunnelledAgent(options: AgentOptions, tunnel: Connect | undefined): HttpsAgent {
  const agent = new HttpsAgent(options);
  return tunnel === undefined ? agent : connectingOver(agent, tunnel, true);
}

/** The same for one request without TLS. */
export function tunnelledPlainAgent(tunnel: Connect): HttpAgent {
  return connectingOver(new HttpAgent(), tunnel, false);
}
