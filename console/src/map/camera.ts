// Which part of the map is seen: a scale and an offset, in pixels of the screen.

export interface Camera {
  scale: number;
  x: number;
  y: number;
}

export interface Size {
  width: number;
  height: number;
}

export const WHOLE: Camera = { scale: 1, x: 0, y: 0 };
const CLOSEST = 60;

/** Zoom so that the point of the screen stays where it is. */
export function zoomed(camera: Camera, factor: number, x: number, y: number): Camera {
  const scale = Math.min(CLOSEST, Math.max(1, camera.scale * factor));
  const by = scale / camera.scale;
  return { scale, x: x - (x - camera.x) * by, y: y - (y - camera.y) * by };
}

/** Not farther than the edges of what there is to see. */
export function held(camera: Camera, map: Size, screen: Size): Camera {
  const clamp = (offset: number, length: number, room: number) =>
    length <= room ? 0 : Math.min(0, Math.max(room - length, offset));
  return {
    scale: camera.scale,
    x: clamp(camera.x, map.width * camera.scale, screen.width),
    y: clamp(camera.y, map.height * camera.scale, screen.height),
  };
}

/** The least move after which a rectangle of the map is in view. */
export function showing(
  camera: Camera,
  at: { x: number; y: number; width: number; height: number },
  screen: Size,
  margin = 24,
): Camera {
  const into = (offset: number, from: number, length: number, room: number) => {
    const start = from * camera.scale + offset;
    const end = (from + length) * camera.scale + offset;
    if (start < margin) return offset + margin - start;
    if (end > room - margin) return offset - (end - room + margin);
    return offset;
  };
  return {
    scale: camera.scale,
    x: into(camera.x, at.x, at.width, screen.width),
    y: into(camera.y, at.y, at.height, screen.height),
  };
}
