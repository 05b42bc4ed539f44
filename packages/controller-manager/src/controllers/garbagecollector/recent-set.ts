/** A set of limited size that evicts the oldest entry. */
export interface RecentSet {
  has(member: string): boolean;
  add(member: string): void;
}

export function newRecentSet(limit: number): RecentSet {
  const members = new Set<string>();
  return {
    has: (member) => members.has(member),
    add(member) {
      members.delete(member);
      members.add(member);
      if (members.size > limit) members.delete(members.values().next().value!);
    },
  };
}
