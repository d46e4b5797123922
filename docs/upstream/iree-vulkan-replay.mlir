// c = c + x[t]; h = h + c; y[t] = h
#map = affine_map<(i, j) -> (i, j)>
module @sums {
  func.func @step(%x: tensor<4x1x2xf32>, %state: tensor<4xf32>)
      -> (tensor<4x1x2xf32>, tensor<4xf32>) {
    %s0 = tensor.extract_slice %state[0] [2] [1] : tensor<4xf32> to tensor<2xf32>
    %s1 = tensor.extract_slice %state[2] [2] [1] : tensor<4xf32> to tensor<2xf32>
    %h0 = tensor.expand_shape %s0 [[0, 1]] output_shape [1, 2] : tensor<2xf32> into tensor<1x2xf32>
    %c0 = tensor.expand_shape %s1 [[0, 1]] output_shape [1, 2] : tensor<2xf32> into tensor<1x2xf32>
    %0 = arith.constant 0 : index
    %1 = arith.constant 1 : index
    %4 = arith.constant 4 : index
    %empty = tensor.empty() : tensor<4x1x2xf32>
    %e = tensor.empty() : tensor<1x2xf32>
    %h, %c, %y = scf.for %t = %0 to %4 step %1 iter_args(%hi = %h0, %ci = %c0, %yi = %empty)
        -> (tensor<1x2xf32>, tensor<1x2xf32>, tensor<4x1x2xf32>) {
      %xt = tensor.extract_slice %x[%t, 0, 0] [1, 1, 2] [1, 1, 1] : tensor<4x1x2xf32> to tensor<1x2xf32>
      %n:2 = linalg.generic {indexing_maps = [#map, #map, #map, #map, #map], iterator_types = ["parallel", "parallel"]}
          ins(%hi, %ci, %xt : tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>)
          outs(%e, %e : tensor<1x2xf32>, tensor<1x2xf32>) {
      ^bb0(%a: f32, %b: f32, %d: f32, %o: f32, %p: f32):
        %s = arith.addf %b, %d : f32
        %r = arith.addf %a, %s : f32
        linalg.yield %r, %s : f32, f32
      } -> (tensor<1x2xf32>, tensor<1x2xf32>)
      %y1 = tensor.insert_slice %n#0 into %yi[%t, 0, 0] [1, 1, 2] [1, 1, 1] : tensor<1x2xf32> into tensor<4x1x2xf32>
      scf.yield %n#0, %n#1, %y1 : tensor<1x2xf32>, tensor<1x2xf32>, tensor<4x1x2xf32>
    }
    %f0 = tensor.collapse_shape %h [[0, 1]] : tensor<1x2xf32> into tensor<2xf32>
    %f1 = tensor.collapse_shape %c [[0, 1]] : tensor<1x2xf32> into tensor<2xf32>
    %flat = tensor.concat dim(0) %f0, %f1 : (tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>
    return %y, %flat : tensor<4x1x2xf32>, tensor<4xf32>
  }
}
