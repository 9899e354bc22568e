import { defineConfig } from "vite";

// The door of the console serves what is built from here; the wheel carries it.
export default defineConfig({
  base: "/console/static/",
  publicDir: false,
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: "../src/dovetail/rest/console/static",
    emptyOutDir: true,
    manifest: "manifest.json",
    target: "es2022",
    // Images as data: addresses would do, inlined scripts and styles would not.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rollupOptions: { input: "src/main.tsx" },
  },
});
