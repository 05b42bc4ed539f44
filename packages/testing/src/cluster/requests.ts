import { AsyncLocalStorage } from "node:async_hooks";
import type { Exchange, ExchangeHandler } from "@coxswain/apimachinery/serving/exchange";
import type { Faults, Requester } from "../faults/faults.ts";
import type { Activity } from "./activity.ts";
import { errorResponse } from "./answers.ts";

/** Wraps the server: counts requests in progress, injects faults, and records writers. */
export class Requests {
  readonly #activity: Activity;
  readonly #faults: Faults;
  readonly #current = new AsyncLocalStorage<Requester>();

  constructor(activity: Activity, faults: Faults) {
    this.#activity = activity;
    this.#faults = faults;
  }

  /** The component for which the current code runs (AsyncLocalStorage); undefined outside of components. */
  get current(): Requester | undefined {
    return this.#current.getStore();
  }

  async pass(exchange: Exchange, next: ExchangeHandler): Promise<void> {
    const requester: Requester = { by: requesterOf(exchange), method: exchange.method, path: exchange.url };
    const fault = this.#faults.next(requester);
    if (fault?.delayMs) await this.#faults.clock.sleep(fault.delayMs);
    const ended = isLongRunning(exchange.url)
      ? () => {}
      : this.#activity.begin(`${requester.method} ${requester.path} of ${requester.by}`);
    try {
      if (fault?.status !== undefined) {
        errorResponse(exchange, fault.status, fault.message, requester);
        return;
      }
      if (fault?.breaks === "before") {
        exchange.destroy();
        return;
      }
      // When an executed request is reported as lost, its response is discarded.
      const seen = fault?.breaks === "after" ? withoutAnswer(exchange) : exchange;
      await this.#current.run(requester, async () => next(seen));
      if (fault?.breaks === "after") exchange.destroy();
    } finally {
      ended();
    }
  }
}

/** True for watches, logs and other requests that do not end by themselves. */
export const isLongRunning = (url: string): boolean =>
  /[?&]watch=(?!false|0)|[?&]follow=(?!false|0)|\/watch\/|\/(?:exec|attach|portforward)(?:\?|$)/.test(url);

/** `kube-scheduler/v1.23.0 (linux/amd64) kubernetes/coxswain/part` → `kube-scheduler/part`. */
function requesterOf({ headers }: Exchange): string {
  const agent = headers["user-agent"] ?? "unknown";
  const own = /^([^/ ]+)\/\S+ \([^)]*\) kubernetes\/coxswain(?:\/(.+))?$/.exec(agent);
  return own === null ? agent : own[2] === undefined ? (own[1] as string) : `${own[1]}/${own[2]}`;
}

function withoutAnswer(exchange: Exchange): Exchange {
  return new Proxy(exchange, {
    get(target, name) {
      if (name === "respond") return () => {};
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
