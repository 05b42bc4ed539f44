import { testSeeds } from "./run.ts";

testSeeds(0);
