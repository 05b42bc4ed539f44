import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { localImages } from "./busybox.ts";
import { imageArchive } from "./oci.ts";

/** `main.ts <busybox> <folder>`: writes one archive per image, for `ctr -n k8s.io images import`. */
const [busybox = "/bin/busybox", folder = "."] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });
for (const image of localImages(busybox)) {
  const file = join(folder, `${(image.names[0] as string).replaceAll(/[^a-z0-9.]+/g, "-")}.tar`);
  writeFileSync(file, imageArchive(image));
  console.log(file);
}
