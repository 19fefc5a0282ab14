/** Routes of images: part of the table in `routes.ts`. */
import { z } from 'zod'
import { functionFinish } from './function-call.ts'
import {
  IMAGE_EXPORT_FORMATS,
  imageSource,
  imagesPrune,
  imagesRemoved,
  imageVerification,
  imageView,
} from './image.ts'
import { page, paged, type Route } from './route.ts'

export const IMAGE_ROUTES = {
  finishFunction: {
    method: 'POST',
    path: '/v1/sandboxes/:id/function',
    summary:
      'Say that the function that a build waits for has run in this sandbox, or why it failed',
    body: functionFinish,
    answer: 'none',
    status: 204,
  },

  buildImage: {
    method: 'POST',
    path: '/v1/images',
    summary: 'Build an image, or find the one of the same content; the log comes as lines',
    body: imageSource,
    answer: 'lines',
    status: 200,
  },
  listImages: {
    method: 'GET',
    path: '/v1/images',
    summary: 'List images',
    query: z.object(page),
    answer: paged(imageView),
    status: 200,
  },
  getImage: {
    method: 'GET',
    path: '/v1/images/:id',
    summary: 'Look at an image',
    answer: imageView,
    status: 200,
  },
  removeImage: {
    method: 'DELETE',
    path: '/v1/images/:id',
    summary: 'Remove an image that nothing uses',
    answer: imagesRemoved,
    status: 200,
  },

  verifyImage: {
    method: 'POST',
    path: '/v1/images/:id/verify',
    summary: 'Read an image’s layers and compare them with their digests',
    answer: imageVerification,
    status: 200,
  },
  exportImage: {
    method: 'GET',
    path: '/v1/images/:id/export',
    summary: 'An image as an OCI archive, or all its files as one tar',
    query: z.object({ format: z.enum(IMAGE_EXPORT_FORMATS).optional() }),
    answer: 'bytes',
    status: 200,
  },
  pruneImages: {
    method: 'POST',
    path: '/v1/images/prune',
    summary: 'Remove what nothing uses',
    body: imagesPrune,
    answer: imagesRemoved,
    status: 200,
  },
} as const satisfies Record<string, Route>
