import type { Client, ClientObserver } from "@coxswain/apimachinery/client/client";
import { sumOfSamples } from "./metrics-text.ts";

/** Counts the requests that this process makes, to tell them from those of the measured daemon. */
export class OwnCalls {
  #count = 0;

  /** To be passed to every client of this process. */
  readonly observer: ClientObserver = { requested: () => void this.#count++, rateLimited: () => {} };

  /** Requests for resources that the API server has answered, except those of this process. */
  async othersOf(client: Client): Promise<number> {
    const metrics = await client.raw("GET", "/metrics");
    this.#count--; // the server's metric counts only requests for resources
    return sumOfSamples(metrics.body.toString(), "apiserver_request_total") - this.#count;
  }
}
