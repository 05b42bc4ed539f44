/** The attacker's process, separate so that it does not block the bystander's event loop. Controlled by messages. */
import { newRunningCase, type RunningCase, type Target } from "./attack.ts";
import { cases } from "./cases/index.ts";

export type Order =
  | { readonly verb: "aim"; readonly target: Target }
  | { readonly verb: "setup"; readonly name: string }
  | { readonly verb: "run"; readonly ms: number }
  | { readonly verb: "cleanup" };
export type Report = { readonly counts?: Record<string, number>; readonly error?: string };

let target: Target | undefined;
let running: RunningCase | undefined;

async function obey(order: Order): Promise<Report> {
  switch (order.verb) {
    case "aim":
      target = order.target;
      return {};
    case "setup": {
      const hostile = cases.find(({ name }) => name === order.name);
      if (hostile === undefined || target === undefined) throw new Error(`no case ${order.name}`);
      running = newRunningCase(target, hostile);
      await running.setup();
      return {};
    }
    case "run":
      return { counts: (await running?.run(order.ms)) ?? {} };
    case "cleanup":
      await running?.cleanup();
      return {};
  }
}

// Operations abandoned at the end of a case, and destroyed sockets, may still fail.
process.on("unhandledRejection", () => {});
process.on("message", (order: Order) => {
  obey(order)
    .catch((err: Error): Report => ({ error: err.stack ?? err.message }))
    .then((report) => process.send?.(report))
    .catch(() => {});
});
process.on("disconnect", () => process.exit());
