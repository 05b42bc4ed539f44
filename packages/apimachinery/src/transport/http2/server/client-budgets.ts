import { TokenBucket } from "./token-bucket.ts";

/** Stream resets of one client, over all its connections. */
const sharedResets = { most: 1_000, perSecond: 33 };
/** Per-connection allowance once the shared budget is exhausted: other clients may share the address (NAT). */
const ownResets = { most: 50, perSecond: 2 };
/**
 * Refusal period after a connection was ended with ENHANCE_YOUR_CALM; it doubles with each further one and starts over when the
 * last refusal ended more than `forgottenAfter` ago. Applies to clients with a certificate only.
 */
const refusalMs = { first: 5_000, most: 300_000, forgottenAfter: 3_600_000 };
/** Upper bound of clients kept in memory; beyond it the oldest entry is evicted. */
const mostClients = 10_000;

interface Client {
  readonly resets: TokenBucket;
  refusals: number;
  /** Timestamp of `performance.now()`. */
  refusedUntil: number;
}

/** Reset budget of one connection, backed by the budget that all connections of its client share. */
export interface ConnectionBudget {
  /** Counts a stream reset. @returns false when the connection has to be closed */
  spendReset(): boolean;
  /** Reports that the connection was closed for abuse (ENHANCE_YOUR_CALM). */
  ended(): void;
}

/**
 * Reset budgets of clients across their connections. A client is identified by its address and its certificate. All clients
 * without a certificate at one address share one budget, because requests are not authenticated yet at this point.
 */
export class ClientBudgets {
  readonly #clients = new Map<string, Client>();

  /**
   * @param certificate its fingerprint, "" for none
   * @returns undefined when the client is refused for now
   */
  admit(address: string, certificate: string, now = performance.now()): ConnectionBudget | undefined {
    const key = `${address} ${certificate}`;
    const client = this.#clientOf(key);
    if (now < client.refusedUntil) return undefined;
    const own = new TokenBucket(ownResets);
    // One address may stand for many clients without a certificate: the pods of a node, a network behind NAT. None of them may
    // lock out the others.
    const mayBeRefused = certificate !== "";
    return {
      spendReset: () => client.resets.spend() || own.spend(),
      ended: () => {
        if (!mayBeRefused) return;
        const at = performance.now();
        if (at - client.refusedUntil > refusalMs.forgottenAfter) client.refusals = 0;
        client.refusedUntil = at + Math.min(refusalMs.first * 2 ** client.refusals++, refusalMs.most);
      },
    };
  }

  #clientOf(key: string): Client {
    let client = this.#clients.get(key);
    if (client === undefined) {
      if (this.#clients.size >= mostClients) this.#clients.delete(this.#clients.keys().next().value!);
      client = { resets: new TokenBucket(sharedResets), refusals: 0, refusedUntil: 0 };
      this.#clients.set(key, client);
    }
    return client;
  }
}
