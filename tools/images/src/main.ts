import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { localImages } from "./busybox.ts";
import { imageArchive } from "./oci.ts";

const usage = `usage: node tools/images/src/main.ts [<busybox> [<folder>]]

Writes an archive for each image of busybox, for \`ctr -n k8s.io images import\` or \`docker load\`, and prints its path.
Defaults: /bin/busybox and the current folder.
`;

const [busybox = "/bin/busybox", folder = "."] = process.argv.slice(2);
if (["-h", "--help"].includes(busybox)) {
  process.stdout.write(usage);
  process.exit(0);
}
mkdirSync(folder, { recursive: true });
for (const image of localImages(busybox)) {
  const file = join(folder, `${image.names[0]!.replaceAll(/[^a-z0-9.]+/g, "-")}.tar`);
  writeFileSync(file, imageArchive(image));
  console.log(file);
}
