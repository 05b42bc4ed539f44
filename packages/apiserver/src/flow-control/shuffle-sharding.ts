/**
 * Which queues a flow may use: few of many, so that two flows seldom share all of theirs and one that floods the level
 * leaves room for the others.
 * Source: k8s.io/apiserver pkg/util/shufflesharding/dealer.go, pkg/util/flowcontrol/apf_controller.go hashFlowID
 */
import { createHash } from "node:crypto";

/** @returns 64 bits that are the same on every server */
export function hashFlow(schema: string, distinguisher: string): bigint {
  return createHash("sha256").update(`${schema}\0${distinguisher}`).digest().readBigUInt64LE(0);
}

/** @returns `handSize` different numbers below `deckSize` */
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
    let card = remainders[i] as number;
    for (let j = i; j > 0; j--) if (card >= (remainders[j - 1] as number)) card++;
    hand.push(card);
  }
  return hand;
}
