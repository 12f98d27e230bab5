# The picture of plugins/vmd/README.md, plugins/vmd/surface.png, in VMD with the plugin installed:
#
#   gunzip -k data/1hvr.pdb.gz && vmd -dispdev text -e tests/vmd/picture.tcl
#   tachyon build/surface.dat -aasamples 4 -res 1500 1350 -format TARGA -o build/surface.tga
#
# What surrounds the picture is cut off, and it is reduced to a width of 420 points.

display resize 1000 900
display depthcue off
color Display Background white
axes location off
mol new data/1hvr.pdb
scale by 1.6
potential map -wait 1
file mkdir build
render Tachyon build/surface.dat
