import { Budget } from "./budget.ts";

/** Streams that are broken off on all connections of one client together. */
const sharedResets = { most: 1_000, perSecond: 33 };
/** What a connection may break off although its client has used up the shared budget: others may be behind its address. */
const ownResets = { most: 50, perSecond: 2 };
/** A client with a certificate whose connection was ended for too many is refused for so long, and twice as long each time within the hour. */
const refusalMs = { first: 5_000, most: 300_000, forgottenAfter: 3_600_000 };
/** Clients that are remembered; beyond them the one that was met first is forgotten. */
const mostClients = 10_000;

interface Client {
  readonly resets: Budget;
  refusals: number;
  /** As `performance.now()`. */
  refusedUntil: number;
}

/** What connections of one client share. */
export interface ConnectionBudget {
  /** @returns false when the connection has to end */
  spendReset(): boolean;
  /** The connection was ended for what its client did. */
  ended(): void;
}

/**
 * Budgets of clients across their connections. A client is its address and its certificate; all without a certificate at one address
 * are one, since nobody knows who asks before his request was authenticated.
 */
export class ClientBudgets {
  readonly #clients = new Map<string, Client>();

  /** @param certificate its fingerprint, "" for none @returns undefined for a client that is refused */
  admit(address: string, certificate: string, now = performance.now()): ConnectionBudget | undefined {
    const key = `${address} ${certificate}`;
    const client = this.#clientOf(key);
    if (now < client.refusedUntil) return undefined;
    const own = new Budget(ownResets);
    // Behind an address are all who have no certificate: the pods of a node, a network's NAT. None of them may lock out the others.
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
      if (this.#clients.size >= mostClients) this.#clients.delete(this.#clients.keys().next().value as string);
      client = { resets: new Budget(sharedResets), refusals: 0, refusedUntil: 0 };
      this.#clients.set(key, client);
    }
    return client;
  }
}
