import { connect } from "node:net";
import { dialErrorText } from "@coxswain/apimachinery/objects/errors/dial-error";
import type { ProbeOutcome } from "./http.ts";

/** Succeeds when the connection is established. Source: pkg/probe/tcp/tcp.go */
export function probeTcp(host: string, port: number, timeoutMs: number): Promise<ProbeOutcome> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    const where = host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
    const finish = (outcome: ProbeOutcome): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(outcome);
    };
    const timer = setTimeout(() => finish({ result: "failure", output: `dial tcp ${where}: i/o timeout` }), timeoutMs);
    socket.once("connect", () => finish({ result: "success", output: "" }));
    socket.once("error", (err) => finish({ result: "failure", output: dialErrorText(err) }));
  });
}
