import type { Client } from "@coxswain/apimachinery/client/client";
import { override } from "@coxswain/apimachinery/testing/override";

/** Deterministic pseudo-random numbers in [0, 1). */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/**
 * A client that fails a share of its requests: half of them before they are sent, the other half after the server has
 * processed them.
 */
export function unreliable(client: Client, share: number, random: () => number): Client {
  const losing =
    <A extends unknown[], R>(call: (...args: A) => Promise<R>) =>
    async (...args: A): Promise<R> => {
      const fate = random();
      if (fate < share / 2) throw new Error("connection refused");
      const answer = await call(...args);
      if (fate < share) throw new Error("connection reset");
      return answer;
    };
  return override(client, {
    get: losing(client.get.bind(client)) as Client["get"],
    create: losing(client.create.bind(client)) as Client["create"],
    update: losing(client.update.bind(client)) as Client["update"],
    patch: losing(client.patch.bind(client)) as Client["patch"],
    delete: losing(client.delete.bind(client)),
  });
}
