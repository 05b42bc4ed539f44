import { maxNodeScore, type Plugin } from "../framework/extension-points.ts";

const mebibyte = 1 << 20;
const leastBytes = 23 * mebibyte;
const mostBytesPerContainer = 1000 * mebibyte;

/** Prefers nodes that already have the pod's images. Sizes are scaled by the share of nodes with the image. */
export const newImageLocality = (): Plugin => ({
  name: "ImageLocality",
  commonScore(_, { pod: { spec } }, __, snapshot) {
    const isAnywhere = spec.containers.some(({ image }) => snapshot.nodesWithImage(normalizedImageName(image ?? "")) > 0);
    return isAnywhere ? undefined : scoreOf(0, spec.containers.length);
  },
  score(_, { pod }, node, snapshot) {
    let sum = 0;
    for (const { image } of pod.spec.containers) {
      const name = normalizedImageName(image ?? "");
      const bytes = node.images.get(name);
      // Divide before multiplying, as upstream does: the order affects rounding.
      if (bytes !== undefined) sum += Math.trunc(bytes * (snapshot.nodesWithImage(name) / snapshot.nodes.length));
    }
    return scoreOf(sum, pod.spec.containers.length);
  },
});

function scoreOf(bytes: number, containers: number): number {
  const most = mostBytesPerContainer * containers;
  const bounded = Math.min(Math.max(bytes, leastBytes), most);
  return Math.trunc((maxNodeScore * (bounded - leastBytes)) / (most - leastBytes));
}

/** `busybox` → `busybox:latest`, as nodes report tags. */
export function normalizedImageName(name: string): string {
  return name.lastIndexOf(":") <= name.lastIndexOf("/") ? `${name}:latest` : name;
}
