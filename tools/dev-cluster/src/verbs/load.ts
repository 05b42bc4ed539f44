import { existsSync } from "node:fs";
import type { Command } from "commander";
import { exec, need } from "../commands.ts";
import { containerdSocket } from "../containerd.ts";
import { Failure } from "../failure.ts";
import { openArchive } from "../image-archive.ts";
import { runningPid } from "../processes.ts";
import { existingCluster, newClusterVerb, noCluster } from "./command.ts";

/** `./cox load <image.tar>`: imports images into a cluster without a registry. */
export function loadVerb(root: string): Command {
  return newClusterVerb("load", "put the images of an archive (docker save, OCI) into a cluster's containerd", {
    notes: [
      "Prints the images' names. Pods use a loaded image when their imagePullPolicy is not Always, as that of :latest is by default.",
    ],
    examples: ["docker save example.com/web:1 -o web.tar && ./cox load web.tar", "./cox load --name b a.tar b.tar.gz"],
    files: ["/run/cox-<id>/containerd.sock"],
  })
    .argument("<archives...>", "tar files, compressed with gzip or not")
    .action(async (archives: string[], { name }: { name: string }) => {
      const settings = existingCluster(root, name, "load");
      for (const archive of archives) if (!existsSync(archive)) throw new Failure(`there is no file ${archive}`);
      if (!settings.withNode) throw new Failure("this cluster has no node, and no containerd to load images into");
      if (runningPid(settings, "containerd") === undefined) throw noCluster(root, name, "is running");
      for (const archive of archives) {
        for (const image of await load(containerdSocket(settings), archive)) console.log(image);
      }
    });
}

/** @returns the names of the imported images. */
async function load(socket: string, archive: string): Promise<string[]> {
  const ctr = need("ctr", "containerd");
  const args = ["--address", socket, "--namespace", "k8s.io", "images", "import", "-"];
  const output = await exec(ctr, args, await openArchive(archive)).catch((err: Error) => {
    const reason = err.message.slice(err.message.indexOf(": ") + 2).replace(/^ctr: /, "");
    throw new Failure(`cannot load ${archive}: ${reason}`);
  });
  const names = [...output.matchAll(/^unpacking (\S+)/gm)].map((match) => match[1]!);
  if (names.length === 0) throw new Failure(`${archive} contains no named image; save it by its name: docker save NAME:TAG`);
  return names;
}
