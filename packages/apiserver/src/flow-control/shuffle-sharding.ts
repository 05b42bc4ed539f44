/**
 * Shuffle sharding: the few of many queues that a flow may use. Two flows rarely share all of their queues, so that a flow
 * that floods the level leaves queues for the others.
 * Source: k8s.io/apiserver pkg/util/shufflesharding/dealer.go, pkg/util/flowcontrol/apf_controller.go hashFlowID
 */
import { createHash } from "node:crypto";

/** @returns 64 bits, equal on all servers */
export function hashFlow(schema: string, distinguisher: string): bigint {
  return createHash("sha256").update(`${schema}\0${distinguisher}`).digest().readBigUInt64LE(0);
}

/** @returns `handSize` distinct numbers below `deckSize` */
export function dealHand(hash: bigint, deckSize: number, handSize: number): number[] {
  const hand: number[] = [];
  let rest = hash;
  const remainders = Array.from({ length: handSize }, (_, i) => {
    const cards = BigInt(deckSize - i);
    const remainder = Number(rest % cards);
    rest /= cards;
    return remainder;
  });
  for (let i = 0; i < handSize; i++) {
    let card = remainders[i]!;
    for (let j = i; j > 0; j--) if (card >= remainders[j - 1]!) card++;
    hand.push(card);
  }
  return hand;
}
